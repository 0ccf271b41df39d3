-- A subscriber's options.

-- Gives a subscriber, whose options or secrets have changed, another version of them; none if it
-- needs none, so that it costs its deliveries nothing. Its pace is reset.
local function renew_options_version(token, version)
  if not options_versions().drop(token) then
    redis.call('HSET', options_key(token), 'plan', version)
    redis.call('HSET', delivery_key(token), 'plan', version)
  end
  STATES[token] = nil
  if redis.call('HDEL', delivery_key(token), 'paced_until') == 1 then wake_subscriber(token) end
end

-- Whether the changes of options change the lanes: their number, or the key that chooses them.
local function changes_lanes(token, changed)
  if changed.lanes then return true end
  return changed.order_key and (tonumber(redis.call('HGET', options_key(token), 'lanes')) or 1) > 1
end

-- Updates other keys that depend on the options that are being set.
local function follow_options(token, options)
  if options.keep_age or options.keep_events then
    local kept = redis.call('HMGET', options_key(token), 'keep_age', 'keep_events')
    local command = (kept[1] or kept[2]) and 'SADD' or 'SREM'
    redis.call(command, retention_key(), token)
  end
  if options.gap_notices == '' then redis.call('DEL', gaps_key(token)) end
end

-- Sets options, given by name (JSON, empty for the default). If none changes, the version stays.
local function put_options(token, options, version)
  local key, changed, lanes = options_key(token), {}, nil
  if options.lanes or options.order_key then lanes = subscriber_lanes().count(token) end
  for name, value in pairs(options) do
    local before = redis.call('HGET', key, name) or ''
    if value ~= before then
      if value == '' then
        redis.call('HDEL', key, name)
      else
        redis.call('HSET', key, name, value)
      end
      changed[name] = true
    end
  end
  if changes_lanes(token, changed) then subscriber_lanes().change(token, lanes, version) end
  if not next(changed) then return end
  follow_options(token, options)
  renew_options_version(token, version)
end
