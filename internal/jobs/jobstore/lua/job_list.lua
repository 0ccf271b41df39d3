-- Lists jobs that have not ended, or archived ones, the newest first.
--
-- ARGV     1 namespace, 2 'open' or 'archive', 3 status, may be empty, 4 the place (µs) and 5 the
--          id of the job before the page, '+inf' and '' for the first, 6 max jobs, 7 type, may be
--          empty
-- Returns  {the last job that was looked at: its place and id, '' if that was the last; jobs, as
--          show_job, with their places behind}
-- Cost     1 command for each list, of a type and status, and 3 for each job. For jobs of the
--          wanted status it looks at some MAX_SEEN others, and some MAX_LOOKED lists, at most.
local archived, status, before, before_id = ARGV[2] == 'archive', ARGV[3], ARGV[4], ARGV[5]
local limit = tonumber(ARGV[6])
local MAX_SEEN, MAX_LOOKED = 500, 2000
local in_progress = status == 'in-progress' -- these are marked in their lane

local keys = {}
local types = ARGV[7] ~= '' and { ARGV[7] } or redis.call('SMEMBERS', types_key())
for _, name in ipairs(types) do
  if in_progress then
    table.insert(keys, lane_key('job', name))
  elseif not archived then
    table.insert(keys, open_key(name))
  else
    for _, one in ipairs(STATUSES) do
      if status == '' or status == one then table.insert(keys, archive_key(name, one)) end
    end
  end
end

-- The next `most` places of a list behind a place, as {place, id, the list}, the highest first.
local function places_of(key, from, from_id, most)
  local top, ahead = from, tonumber(from) or math.huge
  if in_progress then top = from == '+inf' and '(0' or exact(ahead - IN_FLIGHT) end
  -- What is no list, of which an error is returned, has no places.
  local found = redis.pcall('ZREVRANGEBYSCORE', key, top, '-inf', 'WITHSCORES', 'LIMIT', 0,
    most + 1)
  local places = {}
  for i = 1, #found, 2 do
    local place, id = tonumber(found[i + 1]), found[i]
    if in_progress then
      place = place + IN_FLIGHT
      local _, packed = unpack_job(id)
      id = packed
    end
    if #places < most and (place < ahead or id < from_id) then
      table.insert(places, { place, id, key })
    end
  end
  return places
end

local function is_higher(a, b) return a[1] > b[1] or (a[1] == b[1] and a[2] > b[2]) end

-- Only the lists with the highest heads have jobs of this page.
local function page_from(from, from_id, most)
  local heads, page = {}, {}
  for _, key in ipairs(keys) do
    local head = places_of(key, from, from_id, 1)
    if head[1] then table.insert(heads, head[1]) end
  end
  table.sort(heads, is_higher)
  for i = 1, math.min(#heads, most) do
    for _, place in ipairs(places_of(heads[i][3], from, from_id, most)) do
      table.insert(page, place)
    end
  end
  table.sort(page, is_higher)
  return page
end

local reply, seen, looked, listed = { '', '' }, 0, 0, 0
local size = math.max(limit, 100)
while true do
  local page = page_from(before, before_id, size + 1)
  looked = looked + #keys
  for i, place in ipairs(page) do
    if i > size then break end
    local wanted = archived or in_progress or status == ''
      or redis.pcall('HGET', job_key(place[2]), 'status') == status
    if wanted and listed == limit then return reply end
    seen = seen + 1
    if wanted then
      local ok, shown = pcall(show_job, place[2])
      if ok then
        shown[4] = exact(place[1])
        table.insert(reply, shown)
      end
      listed = listed + 1
    end
    before, before_id = exact(place[1]), place[2]
    reply[1], reply[2] = before, before_id
  end
  if #page <= size then
    reply[1], reply[2] = '', ''
    return reply
  end
  if listed == limit or seen >= MAX_SEEN or looked >= MAX_LOOKED then return reply end
end
