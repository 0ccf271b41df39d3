-- The bytes of jobs with two arguments, which labels have.

-- The bytes of a string: its length is in its header, or in one or two bytes behind that.
local function pack_text(text)
  local length = #text
  if length <= MAX_STRING then return string.char(160 + length) .. text end
  if length <= 255 then return '\217' .. string.char(length) .. text end
  return '\218' .. string.char(math.floor(length / 256), length % 256) .. text
end

-- The string whose header is at an index, and the index after it.
local function unpack_text(job, i)
  local length = (string.byte(job, i) or 0) - 160
  if length == 57 then
    i = i + 1
    length = string.byte(job, i) or 0
  elseif length == 58 then
    i = i + 2
    length = (string.byte(job, i - 1) or 0) * 256 + (string.byte(job, i) or 0)
  end
  return string.sub(job, i + 1, i + length), i + length + 1
end

local function pack_pair(name, first, second)
  local arguments = pack_text(first) .. pack_text(second)
  return '\146' .. string.char(160 + #name) .. name .. '\146' .. arguments
end

-- The name of a job as pack_pair writes it, and its arguments in a table; nil for any other.
function KINDS.unpack_job(job)
  local name = string.sub(job, 3, (string.byte(job, 2) or 0) - 158)
  local first, next = unpack_text(job, #name + 4)
  local second = unpack_text(job, next)
  if #name <= MAX_STRING and job == pack_pair(name, first, second) then
    return name, { first, second }
  end
  return nil
end
