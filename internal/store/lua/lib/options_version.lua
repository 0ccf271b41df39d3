-- The version of a subscriber's options, in the fields `plan` of options:{token} and of its state.

-- Makes the step that takes a batch of a subscriber read the batch's state. It does so only if
-- there is a version, so a subscriber without options gets one too.
local function need_options_version(token, version)
  if redis.call('HSETNX', delivery_key(token), 'plan', version) == 1 then
    redis.call('HSET', options_key(token), 'plan', version)
  end
end

-- Scripts that need them create them, as in setbacks.lua.
local function options_versions()
  local self = {}

  -- Removes the version from a subscriber that needs none: it has no options, and no batch waits
  -- that the step that takes it has to look at. Returns whether there is none any more.
  function self.drop(token)
    local options, delivery = options_key(token), delivery_key(token)
    local fields = redis.pcall('HLEN', options)
    if type(fields) ~= 'number' then return false end
    if fields > redis.call('HEXISTS', options, 'plan') then return false end
    if redis.call('HEXISTS', delivery, 'test') == 1 or has_replay(token) then return false end
    redis.call('DEL', options)
    redis.call('HDEL', delivery, 'plan')
    STATES[token] = nil
    return true
  end

  return self
end
