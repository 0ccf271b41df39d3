-- Replaces all definitions.
--
-- ARGV     1 namespace, 2 the edition that is replaced, 3 the new version, 4 now (ms), 5 the
--          definitions (YAML), 6 the moves of labels that are not over (JSON), 7 the outline
--          (JSON), 8 what must be prepared (see definitions_prepare), '' for nothing, 9 the number
--          of states that vanish, 10.. of each its machine and name, then of each review its
--          machine and name
-- Returns  {1}; {0, 'changed'} by somebody else; {0, 'labels rest', machine, state, how many labels
--          are in it, ...}
-- Keeps    no label in a state that is not defined, or that it is to leave
if not definitions_are(ARGV[2]) then return { 0, 'changed' } end
if KEYS[1] and (preparation() or '') ~= ARGV[8] then return { 0, 'changed' } end
local last = 9 + 2 * ARGV[9]
local resting = resting_in(10, last)
if resting then return resting end
for i = 10, last, 2 do redis.call('HDEL', machine_standings_key(ARGV[i]), ARGV[i + 1]) end
redis.call('HSET', definitions_key(), 'version', ARGV[3], 'applied_at', ARGV[4], 'yaml', ARGV[5],
  'moves', ARGV[6], 'outline', ARGV[7])
if KEYS[1] then redis.call('HDEL', definitions_key(), 'preparing') end
for i = last + 1, #ARGV, 2 do add_walk(ARGV[i], ARGV[i + 1]) end
return { 1 }
