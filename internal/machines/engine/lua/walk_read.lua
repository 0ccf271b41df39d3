-- Reads the fields that a gate's evaluation needs of the next labels of a state, in the order of
-- their names.
--
-- ARGV     1 namespace, 2 machine, 3 state, 4 the name behind which to begin, '' for the first,
--          5 how many at most
-- Returns  a list of name, metadata, {when it entered the state (ms), the state before}, ...; it
--          ends earlier if the metadata are long, so that the script stays short
-- Cost     commands: 1, and 2 a label
local MAX_BYTES = 262144
local machine, behind, bytes = ARGV[2], '-', 0
if ARGV[4] ~= '' then behind = '(' .. ARGV[4] end
local reply = {}
for i, name in ipairs(redis.call('ZRANGEBYLEX', labels_in_key(machine, ARGV[3]), behind, '+',
  'LIMIT', 0, ARGV[5])) do
  reply[3 * i - 2] = name
  local metadata = redis.call('GET', label_metadata_key(machine, name))
  reply[3 * i - 1] = metadata
  reply[3 * i] = redis.call('HMGET', label_key(machine, name), 'entered_at', 'previous')
  bytes = bytes + #(metadata or '')
  if bytes >= MAX_BYTES then break end
end
return reply
