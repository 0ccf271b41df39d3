-- Gives a subscriber, whose options have changed, another version of its plan: none if it has no
-- options left, so that it costs its publishers and deliveries nothing.
local function renew_plan(token, version)
  local options = options_key(token)
  if redis.call('HLEN', options) == redis.call('HEXISTS', options, 'plan') then
    redis.call('DEL', options)
    redis.call('HDEL', delivery_key(token), 'plan')
    return
  end
  redis.call('HSET', options, 'plan', version)
  redis.call('HSET', delivery_key(token), 'plan', version)
end
