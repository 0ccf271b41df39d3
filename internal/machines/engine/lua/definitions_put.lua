-- Replaces all definitions.
--
-- ARGV     namespace; definitionsArgs of replacement.go; then of each state that vanishes its
--          machine and name, and of each review its machine and name
-- Returns  {1}; {0, 'changed'} by another call; {0, 'labels rest', machine, state, how many labels
--          are in it, ...}
-- Keeps    no label in a state that is not defined, or that it is to leave
local edition, version, now, yaml, moves, outline, prepared, vanished = unpack(ARGV, 2, 9)
local FIRST = 10
if not definitions_are(edition) then return { 0, 'changed' } end
if KEYS[1] and (preparation() or '') ~= prepared then return { 0, 'changed' } end
local last = FIRST - 1 + 2 * vanished
local resting = resting_in(FIRST, last)
if resting then return resting end
for i = FIRST, last, 2 do redis.call('HDEL', machine_standings_key(ARGV[i]), ARGV[i + 1]) end
redis.call('HSET', definitions_key(), 'version', version, 'applied_at', now, 'yaml', yaml,
  'moves', moves, 'outline', outline)
if KEYS[1] then redis.call('HDEL', definitions_key(), 'preparing') end
for i = last + 1, #ARGV, 2 do add_walk(ARGV[i], ARGV[i + 1]) end
return { 1 }
