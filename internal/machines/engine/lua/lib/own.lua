-- The client that the machines are to the bus.

-- Its token; nil if it has none. Of several it is the one with the machines' subscription; a token
-- with another subscription, or that is being replaced, is left alone. So are those of other
-- partitions: each with a space before and after.
local function own_token(name, callback, elsewhere)
  local found
  local tokens = redis.call('HGETALL', tokens_key())
  for i = 1, #tokens, 2 do
    local token = tokens[i]
    local is_here = not string.find(elsewhere, ' ' .. token .. ' ', 1, true)
    if tokens[i + 1] == name and is_here and holder_of(token) == token then
      local has = redis.call('HGET', subscriber_key(token), 'callback')
      if has == callback then return token end
      if not has and (not found or token < found) then found = token end
    end
  end
  return found
end

-- The same, with a new token if it has none.
local function ensure_token(name, callback, elsewhere, fresh)
  local token = own_token(name, callback, elsewhere)
  if token then return token end
  redis.call('HSET', tokens_key(), fresh, name)
  return fresh
end
