-- Included where fences are drawn: the next one of a counter, which is still to be kept there, or an error. `us` is the
-- server's clock in microseconds, `grain` what it is rounded down to beside a counter.
local function next_fence(counter, us, grain)
  local last = redis.pcall('GET', counter)
  if type(last) == 'table' then return last end
  -- The clock is above all that was ever drawn: also where the counter is new, was lost, or came back from an old copy.
  -- It is rounded so that the nodes of a quorum draw the same number.
  if not last then return us end
  last = tonumber(last)
  if not last then return redis.error_reply('ERR the fence counter holds no number') end
  return math.max(last + 1, us - us % grain)
end
