-- Discharges accounts for data that Redis has removed by itself: see discharge_after.
--
-- ARGV     1 namespace, 2.. fields @time/client of accounts; one that is damaged only goes
-- Returns  {1}
allow_when_full()
for i = 2, #ARGV do
  local client = string.match(ARGV[i], '^@%d+/([%w_:-]+)$')
  local bytes = string.match(redis.call('HGET', accounts_key(), ARGV[i]) or '', '^%d+$')
  if client and bytes and #bytes <= 15 then charge(account_of(client), -tonumber(bytes)) end
  redis.call('HDEL', accounts_key(), ARGV[i])
end
return { 1 }
