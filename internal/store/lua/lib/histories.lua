-- The histories of topics: what was published to them, for a while.

-- These are made by a script that needs them, as those of setbacks.lua.
local function histories()
  local self = {}

  -- Appends what was published to a topic: the arguments from `first` to `last`. The topic's counter
  -- has counted them.
  function self.append(topic, now, first, last, counter) end

  return self
end
