--@ include reason.lua
-- Included where fences are drawn: the next one of a counter, which is still to be kept there, or an error. `us` is the
-- server's clock in microseconds, `grain` what it is rounded down to beside a counter. `call`: redis.pcall.
local function next_fence(counter, us, grain)
  local last = call('GET', counter)
  if type(last) == 'table' then return last end
  if last and not string.find(last, '^%d+$') then
    return redis.error_reply('FENCE the counter holds no number')
  end
  local number = last and tonumber(last) or 0
  local wrong = unreasonable(number, us)
  if wrong then return wrong end
  -- The clock is above all that was ever drawn: also where the counter is new, was lost, or came back from an old copy.
  -- It is rounded so that the nodes of a quorum draw the same number.
  if not last then return us end
  return math.max(number + 1, us - us % grain)
end
