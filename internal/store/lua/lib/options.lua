-- A subscriber's options, and their version: its plan.

-- Has the step that takes a batch of a subscriber look for the batch's state. It does so only if it
-- sees a plan, so a subscriber without options gets an empty one.
local function need_plan(token, version)
  if redis.call('HSETNX', delivery_key(token), 'plan', version) == 1 then
    redis.call('HSET', options_key(token), 'plan', version)
  end
end

-- Removes the plan of a subscriber that needs none: it has no options, and no batch waits that the
-- step that takes it has to look at. Returns whether there is none any more.
local function drop_plan(token)
  local options, delivery = options_key(token), delivery_key(token)
  local fields = redis.pcall('HLEN', options)
  if type(fields) ~= 'number' then return false end
  if fields > redis.call('HEXISTS', options, 'plan') then return false end
  if redis.call('HEXISTS', delivery, 'test') == 1 or has_replay(token) then return false end
  redis.call('DEL', options)
  redis.call('HDEL', delivery, 'plan')
  return true
end

-- Gives a subscriber, whose options or secrets have changed, another version of its plan; none if
-- it needs none, so that it costs its deliveries nothing. Its pace
-- begins anew.
local function renew_plan(token, version)
  if not drop_plan(token) then
    redis.call('HSET', options_key(token), 'plan', version)
    redis.call('HSET', delivery_key(token), 'plan', version)
  end
  if redis.call('HDEL', delivery_key(token), 'paced_until') == 1 then wake_subscriber(token) end
end

-- Sets options, given by name (JSON, empty for the default). What changes nothing keeps the plan.
local function put_options(token, options, version)
  local key, changed = options_key(token), false
  for name, value in pairs(options) do
    local before = redis.call('HGET', key, name) or ''
    if value ~= before then
      if value == '' then
        redis.call('HDEL', key, name)
      else
        redis.call('HSET', key, name, value)
      end
      changed = true
    end
  end
  if changed then renew_plan(token, version) end
end
