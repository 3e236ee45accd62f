-- Included where fences are counted: what no counter reaches within reason. In microseconds, a year after the server's
-- clock, which may have been set back, or be behind another's; and all that far before numbers have gaps here (2^53).
local YEAR, MOST = 31622400000000, 9007199254740991

-- What is wrong with a fence; nil: nothing. `us` is the server's clock in microseconds.
local function unreasonable(fence, us)
  if us > MOST - YEAR then return redis.error_reply('FENCE the clock is beyond reason') end
  if fence > us + YEAR then return redis.error_reply('FENCE more than a year ahead of the clock') end
end
