-- Reads, of one moment, a subscriber's gauges and which of the newest batches are its own.
--
-- ARGV     1 namespace, 2 token, 3 created since (ms), 4 the most batches to look at
-- Returns  {gauge of batches, gauge of events, gauge of bytes, number of batches looked at, the
--          subscriber's batches...}; '' for a gauge that is not there
local token = ARGV[2]
local newest = redis.call('ZREVRANGEBYSCORE', batches_index_key(), '+inf', ARGV[3],
  'LIMIT', 0, ARGV[4])
local reply = {
  redis.call('HGET', batch_gauge_key(), token) or '',
  redis.call('HGET', event_gauge_key(), token) or '',
  redis.call('HGET', bytes_gauge_key(), token) or '',
  tostring(#newest),
}
for _, bid in ipairs(newest) do
  local owner = redis.pcall('LINDEX', batch_key(bid), 0)
  if type(owner) == 'string' and holder_of(owner) == token then table.insert(reply, bid) end
end
return reply
