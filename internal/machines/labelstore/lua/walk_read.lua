-- Reads what a gate's evaluation needs of the next labels of a state, in the order of their names.
--
-- ARGV     1 namespace, 2 machine, 3 state, 4 the name behind which to begin, '' for the first,
--          5 how many
-- Returns  a list of name, metadata, {when it entered the state (ms), the state before}, ...
-- Cost     commands: 1, and 2 a label
local machine, behind = ARGV[2], '-'
if ARGV[4] ~= '' then behind = '(' .. ARGV[4] end
local reply = {}
for i, name in ipairs(redis.call('ZRANGEBYLEX', labels_key(machine, ARGV[3]), behind, '+', 'LIMIT',
  0, ARGV[5])) do
  reply[3 * i - 2] = name
  reply[3 * i - 1] = redis.call('GET', metadata_key(machine, name))
  reply[3 * i] = redis.call('HMGET', label_key(machine, name), 'entered_at', 'previous')
end
return reply
