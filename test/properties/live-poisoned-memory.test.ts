/** What was in memory before a run changes nothing, and nothing is written beyond what there is: also where a run had too little room. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Bound } from '../../src/run/bind/index.ts'
import { compileOn } from '../../src/run/compile/compiled-program.ts'
import { runOn } from '../../src/run/compile/program.ts'
import { Executable } from '../../src/run/execution/execute.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { Choices } from '../support/choices.ts'
import { guarded, spoil } from '../support/guarded-device.ts'
import { compare } from './agree.ts'
import { live } from './live-gen.ts'
import { asWritten, SCHEDULES, scheduled, told } from './live-properties.ts'
import { numbers, parameters } from './property-cases.ts'

/** NaN and −1; large positive numbers; 16843009; next to nothing; anything. */
const BYTES: readonly ((seed: number) => (k: number) => number)[] = [
  () => () => 0xff,
  () => () => 0x7f,
  () => () => 1,
  () => (k) => (k % 4 === 0 ? 3 : 0),
  (seed) => (k) => Math.imul(k + seed, 2654435761) >>> 24,
]

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

/** Writes, spoils and runs again and again; `room`: for so many positions of each list, or of all. */
async function spoilt(c: Choices, on: Device, patterns: number): Promise<void> {
  const s = live(c)
  const name = c.pick(SCHEDULES)
  const room = c.pick(['', ' capacity 1', ' capacity 3', ' capacity k / 4'])
  const all = room !== '' && name === 'fused' ? c.pick(['', ' in all']) : ''
  const text = s.text.replaceAll('live in place', `live in place${room}${all}`)
  await told([text, s.sizes], async () => {
    const compilation = scheduled({ text }, name)
    const { device, broken } = guarded(on)
    const program = await compileOn(device, runOn(compilation, on.kind))
    const given = s.inputs.tensors![s.source]!
    let bound: Bound | undefined
    let executable: Executable | undefined
    try {
      for (let k = 0; k < patterns; k++) {
        const tensors = { ...s.inputs.tensors, [s.source]: { ...given, values: s.other() } as never }
        const now = asWritten(compilation, { tensors })
        if (executable) await executable.rebind(now.bound, [s.source])
        else executable = await Executable.create(program, now.bound)
        bound = now.bound
        await spoil(executable, c.pick(BYTES)(c.below(9999)))
        const end = await executable.run().then(
          () => 'right',
          (e: SptError) => e.diagnostics[0]!.code,
        )
        expect(await broken()).toEqual([])
        for (const b of program.plan.buffers)
          if (b.role === 'in' || b.role === 'index')
            expect(await executable.values(b.name), b.name).toEqual(bound.arrays.get(b.name))
        if (room !== '' && end === 'run/overflow') continue
        expect(end).toBe('right')
        const memory = new Map<string, ArrayLike<number>>()
        for (const name of Object.keys(now.expected))
          memory.set(name, (await executable.values(name)) as never)
        compare(device.kind, bound, memory as never, now.expected)
      }
    } finally {
      executable?.free()
      program.release()
    }
  })
}

test('on the cpu', async () => {
  const cpu = createCpuDevice()
  await fc.assert(
    fc.asyncProperty(numbers, (n) => spoilt(new Choices(n), cpu, 6)),
    parameters(12),
  )
  await cpu.dispose()
}, 3_600_000)

test('on webgpu, by threads', async () => {
  await fc.assert(
    fc.asyncProperty(numbers, (n) => spoilt(new Choices(n), webgpu, 6)),
    parameters(3),
  )
}, 3_600_000)
