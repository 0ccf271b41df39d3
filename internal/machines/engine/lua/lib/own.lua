-- The client that the machines are to the bus.

-- Its token; nil if it has none. Of several tokens it takes the one with the machines'
-- subscription, and skips tokens with another subscription, tokens that are being replaced, and
-- tokens of other partitions, which are given with a space before and after each.
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
