-- Checks that a set lists what there is a key for.
--
-- ARGV     1 namespace, 2 '1' to fix it, 3 key, 4 set, 5 member
-- Returns  {} or {'unlisted'}
if redis.call('EXISTS', ARGV[3]) == 0 then return {} end
if redis.call('SISMEMBER', ARGV[4], ARGV[5]) == 1 then return {} end
if fix then redis.call('SADD', ARGV[4], ARGV[5]) end
return { 'unlisted' }
