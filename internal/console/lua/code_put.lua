-- Makes a login code, and drops the client's oldest ones if it has too many.
-- Arguments: the namespace, the code's id, its value, its TTL (ms), its client's id, the maximum
-- number of codes of a client. Returns 1.
local ns, id, ttl = ARGV[1], ARGV[2], ARGV[4]
local own, max = login_codes_key(ARGV[5]), tonumber(ARGV[6])
redis.call('SET', login_code_key(id), ARGV[3], 'PX', ttl)
if type(redis.pcall('LPUSH', own, id)) ~= 'number' then -- something else wrote there
  redis.call('DEL', own)
  redis.call('LPUSH', own, id)
end
for _, old in ipairs(redis.call('LRANGE', own, max, -1)) do
  redis.call('DEL', login_code_key(old))
end
redis.call('LTRIM', own, 0, max - 1)
redis.call('PEXPIRE', own, ttl)
return 1
