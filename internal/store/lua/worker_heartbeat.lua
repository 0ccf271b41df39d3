-- Notes that workers are alive.
--
-- ARGV     1 namespace, 2 now (ms), 3.. workers
-- Returns  1
allow_when_full()
for i = 3, #ARGV do redis.call('HSET', workers_key(), ARGV[i], ARGV[2]) end
return 1
