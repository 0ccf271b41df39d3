-- Keeps labels out of states that vanish with the next definitions, until those are in place or
-- this is abandoned. Only on a bus with partitions, where no step replaces the definitions of all.
--
-- ARGV     1 namespace, 2 the edition that is to be replaced, 3 the preparation: its id,
--          machine/state of each state that vanishes, and machine/state! of each that leads to one,
--          each with a newline behind it, 4.. the states that vanish: of each its machine and name
-- Returns  {1}; {0, 'changed'} if another call has changed or prepared them; {0, 'labels rest',
--          ...} as definitions_put
if not definitions_are(ARGV[2]) then return { 0, 'changed' } end
local before = preparation()
if before and before ~= ARGV[3] then return { 0, 'changed' } end
local resting = resting_in(4, #ARGV)
if resting then return resting end
redis.call('HSET', definitions_key(), 'preparing', ARGV[3])
return { 1 }
