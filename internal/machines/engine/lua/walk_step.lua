-- Queues labels of a state for workers, for a trigger, and notes how far the walk has come.
--
-- ARGV     1 namespace, 2 machine, 3 state, 4 trigger, 5 the walk, 6 the note of it, 7 the
--          edition of the definitions by which the labels were chosen, 8.. names
-- Returns  {1}; {0, 'changed'} if the definitions are others
if not definitions_are(ARGV[7]) then return { 0, 'changed' } end
local machine, state = ARGV[2], ARGV[3]
for i = 8, #ARGV do
  local found = redis.call('HMGET', label_key(machine, ARGV[i]), 'state', 'hops')
  if found[1] == state then
    note_hops(machine, ARGV[i], '0', found[2])
    ask(machine, ARGV[i], ARGV[4])
  end
end
redis.call('HSET', walks_key(), ARGV[5], ARGV[6])
return { 1 }
