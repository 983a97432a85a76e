/** Before anything is timed, a GPU that idled has worked until its clock is up: whatever the steps in which it rises. */
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Command, Device } from '../../src/runtime/device.ts'
import { raiseClock } from '../../src/runtime/measure.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** One command takes a millisecond at full clock, `slow[k]` times as long in the k-th step, each of which lasts `each` ms of work. */
function rising(slow: readonly number[], each: number, facts: Partial<Device> = {}) {
  let worked = 0
  const work = (n: number): void => {
    for (let k = 0; k < n; k++) {
      const ms = slow[Math.floor(worked / each)] ?? 1
      vi.advanceTimersByTime(ms)
      worked += ms
    }
  }
  const device = {
    kind: 'webgpu',
    time: async (commands: readonly Command[]) => {
      work(commands.length)
      return [slow[Math.floor(worked / each)] ?? 1]
    },
    run: async (commands: readonly Command[]) => work(commands.length),
    ...facts,
  } as unknown as Device
  return { device, worked: () => worked }
}

const COMMAND = { kind: 'clear' } as unknown as Command

property([fc.array(fc.integer({ min: 2, max: 6 }), { maxLength: 6 }), fc.integer({ min: 40, max: 180 })], {
  numRuns: runs(30),
})(
  'the warm-up runs until the clock no longer rises, and not again while it stays up',
  async (steps, each) => {
    const slow = steps.toSorted((a, b) => b - a)
    const { device, worked } = rising(slow, each)
    await raiseClock(device, [COMMAND])
    // Steps of one height are one, and longer than any that was seen.
    const longest = Math.max(0, ...slow.map((s) => slow.filter((x) => x === s).length * each))
    if (longest <= 180) expect(worked()).toBeGreaterThanOrEqual(slow.length * each)
    const before = worked()
    expect(before).toBeLessThan(3000)
    vi.advanceTimersByTime(900)
    await raiseClock(device, [COMMAND])
    expect(worked()).toBe(before)
    vi.advanceTimersByTime(1100)
    await raiseClock(device, [COMMAND])
    expect(worked()).toBeGreaterThan(before)
  },
)

property([fc.array(fc.integer({ min: 100, max: 990 }), { minLength: 10, maxLength: 20 })], {
  numRuns: runs(30),
})('frequent calls do not count as work: the clock is raised again during them', async (pauses) => {
  const { device, worked } = rising([], 100)
  await raiseClock(device, [COMMAND])
  for (let [before, idle] = [worked(), 0]; pauses.length > 0; ) {
    const pause = pauses.pop()!
    vi.advanceTimersByTime(pause)
    idle += pause
    await raiseClock(device, [COMMAND])
    if (worked() > before) [before, idle] = [worked(), 0]
    expect(idle).toBeLessThanOrEqual(1000)
  }
})

test('CPUs need no warm-up', async () => {
  for (const facts of [{ kind: 'cpu' }, { isSoftware: true }] as const) {
    const { device, worked } = rising([4], 100, facts)
    await raiseClock(device, [COMMAND])
    expect(worked()).toBe(0)
  }
})
