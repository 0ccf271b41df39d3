-- The idempotency keys of a client stand in at most SLICES hashes. A slice takes keys for a while,
-- and expires as a whole. Its field LIFE says when it was begun and when it expires (ms). Any other
-- field is a digest of a key; its value is a digest of the request.
local SLICES, LIFE = 8, 'life'
local SPREAD = 0.25 -- how much longer than it must a key may live, as a share of its life

-- The idempotency keys of one client, by its name. Scripts that need them create them, as in
-- setbacks.lua.
local function idempotency_keys(name)
  local self = {}

  local function life_of(begun, expires) return string.format('%.0f-%.0f', begun, expires) end

  -- Reads one slice, and its value of a field. A slice that has expired, or is malformed, has no
  -- `expires`: its place is free.
  function self.slice(number, field, now)
    local slice = { key = idempotency_key(name, number) }
    local found = redis.pcall('HMGET', slice.key, LIFE, field)
    local begun, expires = string.match(found[1] or '', '^(%d+)-(%d+)$')
    if begun and tonumber(expires) > now then
      slice.begun, slice.expires, slice.digest = tonumber(begun), tonumber(expires), found[2]
    end
    return slice
  end

  -- Reads all slices of a client.
  function self.read(field, now)
    local all = {}
    for number = 1, SLICES do table.insert(all, self.slice(number, field, now)) end
    return all
  end

  function self.count(slice) return redis.call('HLEN', slice.key) - 1 end

  -- Chooses the slice that a new key goes into, which is to live for `life` (ms), and reads all
  -- that is needed to write it: a slice that expires soon after the key may; else a free place;
  -- else the slice with room that expires last; else the place of the oldest slice, whose keys go.
  -- So no key is evicted early before the client has seven eighths of its maximum.
  function self.choose(all, now, life, max_keys)
    local newest, free, oldest, last
    for _, slice in ipairs(all) do
      if not slice.expires then
        free = free or slice
      else
        local fits = slice.expires >= now + life and slice.expires <= now + life * (1 + SPREAD)
        if fits and (not newest or slice.begun >= newest.begun) then newest = slice end
        if not oldest or slice.begun < oldest.begun then oldest = slice end
      end
    end
    if newest and self.count(newest) < max_keys then return newest end
    if not free then
      for _, slice in ipairs(all) do
        if self.count(slice) < max_keys and (not last or slice.expires > last.expires) then
          last = slice
        end
      end
      if last then return last end
      oldest.dropped = self.count(oldest)
    end
    local new = free or oldest
    new.expires = nil
    return new
  end

  -- Puts a key into the slice that was chosen for it. Returns how many others had to go.
  function self.put(slice, field, digest, now, life)
    if slice.expires and slice.expires >= now + life then
      redis.call('HSET', slice.key, field, digest)
      return 0
    end
    if not slice.expires then redis.call('UNLINK', slice.key) end
    local expires = now + life * (1 + SPREAD)
    redis.call('HSET', slice.key, LIFE, life_of(now, expires), field, digest)
    redis.call('PEXPIRE', slice.key, string.format('%.0f', expires - now))
    return slice.dropped or 0
  end

  -- Looks for a key. Returns the digest of its request, and the slice that it stands in.
  function self.find(all)
    for _, slice in ipairs(all) do
      if slice.digest then return slice.digest, slice end
    end
  end

  -- Extends the life of a key that is used again, and of its slice. The first write takes no
  -- memory, so a full Redis answers a repetition too; and replicas have something to confirm.
  function self.renew(slice, now, life)
    local expires = math.max(slice.expires, now + life)
    redis.call('PEXPIRE', slice.key, string.format('%.0f', expires - now))
    if expires > slice.expires then
      redis.call('HSET', slice.key, LIFE, life_of(slice.begun, expires))
    end
  end

  -- Removes all idempotency keys of a client.
  function self.remove()
    for number = 1, SLICES do redis.call('UNLINK', idempotency_key(name, number)) end
  end

  return self
end
