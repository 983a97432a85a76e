/** Commands that are brought together still come after all that they depend on, whichever columns lie in a memory. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { DeviceBuffer } from '../../src/runtime/device.ts'
import type { Column, Use } from '../../src/storage/engines/device/kernels/kernel-builder.ts'
import { read, update, write } from '../../src/storage/engines/device/kernels/kernel-builder.ts'
import { type Pending, scheduleCommands } from '../../src/storage/engines/device/queue/command-order.ts'
import type { Slot } from '../../src/storage/engines/device/queue/kernel-cache.ts'
import { runs } from '../support/cases.ts'

const memory = Array.from({ length: 4 }, (): DeviceBuffer => ({ bytes: 256, label: '', free: () => {} }))
const slots = Array.from(
  { length: 3 },
  (_, k): Slot => ({
    key: `${k}`,
    kernel: null,
    compiled: new Promise(() => {}),
  }),
)
/** A column of its own each time: memory that was given back has another one. */
const columnIn = (m: number): Column => ({ memory: memory[m]!, dtype: 'i32', length: 1 })
const SHARED = 0

const pending = (slot: number, uses: readonly Use[], clear: DeviceBuffer | null = null): Pending => ({
  slot: slots[slot]!,
  spec: {
    key: '',
    threads: 1,
    columns: Object.fromEntries(uses.map((u, k) => [`c${k}`, u])),
    body: () => [],
  },
  clear,
})

const launch = fc
  .tuple(
    fc.nat(1),
    fc.uniqueArray(fc.tuple(fc.nat(memory.length - 1), fc.constantFrom(read, write, update)), {
      selector: ([m]) => m,
      minLength: 1,
      maxLength: 3,
    }),
  )
  .map(([slot, uses]) =>
    pending(
      slot,
      uses.map(([m, access]) => (m === SHARED ? update : access)(columnIn(m))),
    ),
  )
const clear = fc.nat(memory.length - 1).map((m) => pending(2, [write(columnIn(m))], memory[m]!))

const touches = (p: Pending, m: DeviceBuffer): Use | undefined =>
  Object.values(p.spec.columns).find((u) => u.column.memory === m)

const conflict = (a: Pending, b: Pending): boolean =>
  memory.some((m, k) => {
    const [x, y] = [touches(a, m), touches(b, m)]
    if (!x || !y) return false
    if (k === SHARED) return a.clear === m || b.clear === m
    return x.access !== 'read' || y.access !== 'read'
  })

test('commands on the same memory keep their order if one writes', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof({ weight: 3, arbitrary: launch }, clear), { maxLength: 14 }),
      (commands) => {
        const groups = scheduleCommands(commands, new Set([memory[SHARED]!]))
        const at = new Map(groups.flatMap((g, k) => g.map((p) => [p, k] as const)))
        expect(at.size).toBe(commands.length)
        for (const [k, b] of commands.entries())
          for (const a of commands.slice(0, k)) if (conflict(a, b)) expect(at.get(a)).toBeLessThan(at.get(b)!)
      },
    ),
    { numRuns: runs(300) },
  )
})
