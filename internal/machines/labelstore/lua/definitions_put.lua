-- Replaces all definitions.
--
-- ARGV     1 namespace, 2 the version that is replaced, 3 now (ms), 4 the definitions (YAML), 5 the
--          moves of labels that are not over (JSON), 6 the outline (JSON), 7 the number of states
--          that vanish, 8.. of each its machine and name, then of each review its machine and name
-- Returns  {1, the new version (text)}; {0, 'changed'} by somebody else; {0, 'labels rest',
--          machine, state, how many labels are in it, ...}
-- Keeps    no label in a state that is not defined, or that it is to leave
if not definitions_are(ARGV[2]) then return { 0, 'changed' } end
local last = 7 + 2 * ARGV[7]
local resting = { 0, 'labels rest' }
for i = 8, last, 2 do
  local count = redis.call('ZCARD', labels_key(ARGV[i], ARGV[i + 1]))
  if count > 0 then
    table.insert(resting, ARGV[i])
    table.insert(resting, ARGV[i + 1])
    table.insert(resting, count)
  end
end
if #resting > 2 then return resting end
for i = 8, last, 2 do redis.call('HDEL', standings_key(ARGV[i]), ARGV[i + 1]) end
local version = exact(ARGV[2] + 1)
redis.call('HSET', definitions_key(), 'version', version, 'applied_at', ARGV[3], 'yaml', ARGV[4],
  'moves', ARGV[5], 'outline', ARGV[6])
for i = last + 1, #ARGV, 2 do add_walk(ARGV[i], ARGV[i + 1]) end
return { 1, version }
