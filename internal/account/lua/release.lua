-- Discharges accounts for what Redis has removed by itself: see discharge_after.
--
-- ARGV     1 namespace, 2.. fields @time/client of accounts
-- Returns  {1}
allow_when_full()
for i = 2, #ARGV do
  local bytes = tonumber(redis.call('HGET', accounts_key(), ARGV[i]))
  local client = string.match(ARGV[i], '/(.+)$')
  if bytes and client then charge(account_of(client), -bytes) end
  redis.call('HDEL', accounts_key(), ARGV[i])
end
return { 1 }
