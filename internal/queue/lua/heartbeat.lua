-- Notes that workers are alive, and how many entries of a lane of each kind they run at once.
--
-- ARGV     1 namespace, 2 now (ms), 3 number of workers, these, then of each kind its name and
--          how many entries of a lane may be in flight
-- Returns  1
allow_when_full()
local workers = tonumber(ARGV[3])
for i = 4, 3 + workers do redis.call('HSET', workers_key(), ARGV[i], ARGV[2]) end
for i = 4 + workers, #ARGV, 2 do redis.call('HSET', max_in_flight_key(), ARGV[i], ARGV[i + 1]) end
return 1
