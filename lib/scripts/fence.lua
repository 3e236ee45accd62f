--@ include reason.lua
-- Included where fences are drawn: the next one of a counter, and how many after it are drawn for those to whom its
-- holder passes the lock on; or an error. All of them are still to be kept there. `us` is the server's clock in
-- microseconds, `grain` what it is rounded down to beside a counter, `spare` how many are asked for besides: none is
-- drawn if the counter would be more than a second ahead of the clock, so that little is lost with a counter. `call`:
-- redis.pcall.
local function next_fence(counter, us, grain, spare)
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
  local fence = last and math.max(number + 1, us - us % grain) or us
  return fence, fence + spare <= us + 1000000 and spare or 0
end
