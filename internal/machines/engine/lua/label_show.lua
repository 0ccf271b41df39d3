-- Reads a label as it is.
--
-- ARGV     1 namespace, 2 machine, 3 name
-- Returns  {edition of the definitions or false, metadata or false, the fields of the record or
--          false, when a worker looks at it next (ms, text), '0' if at once, false if none will}
local machine, name = ARGV[2], ARGV[3]
local label = read_label(machine, name)
return {
  definitions_edition(), redis.call('GET', label_metadata_key(machine, name)),
  label and label.values or false, next_look(machine, name),
}
