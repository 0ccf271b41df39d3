-- Notes that workers are alive, and how many entries of a lane of each kind they run at once.
--
-- ARGV     1 namespace, 2 now (ms), 3 number of workers, these, then of each kind its name and
--          how many entries of a lane may be in flight
-- Returns  1
allow_when_full()
local workers, fields = tonumber(ARGV[3]), {}
for i = 4, 3 + workers do
  table.insert(fields, ARGV[i])
  table.insert(fields, ARGV[2])
  if #fields == 1000 or i == 3 + workers then
    redis.call('HSET', workers_key(), unpack(fields))
    fields = {}
  end
end
for i = 4 + workers, #ARGV, 2 do redis.call('HSET', max_in_flight_key(), ARGV[i], ARGV[i + 1]) end
return 1
