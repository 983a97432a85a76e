/**
 * Kernels × schedules of `kernels/` through JSON: the plan is the same, apart from source locations, and binds and runs
 * the same. Each run has some of them; long runs have all.
 */
import { readdirSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { smallData } from '../../src/api/inputs/small-data.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { type Device, devices, load } from '../../src/node.ts'
import type { LaunchPlan } from '../../src/plan/launch-plan.ts'
import { readPlan } from '../../src/plan/read.ts'
import { writePlan } from '../../src/plan/write.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { compileOn } from '../../src/run/compile/compiled-program.ts'
import { lanesOf } from '../../src/run/compile/lowering-options.ts'
import { loadOn, runOn } from '../../src/run/compile/program.ts'
import { Executable } from '../../src/run/execution/execute.ts'
import { unorderedSums } from '../../src/run/verify/unordered-sums.ts'
import { verify } from '../../src/run/verify/verify.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { isTurnOf, LONG, sample } from '../support/cases.ts'

const FILES = readdirSync('kernels').filter((f) => f.endsWith('.spt') && !f.includes('formats'))

/** A device that compiles nothing. */
const printing = (kind: 'webgpu' | 'cuda'): Device =>
  ({
    ...createCpuDevice(),
    kind,
    name: `no ${kind}`,
    storage: kind === 'webgpu' ? 'words' : 'native',
    features: new Set(['subgroups', 'shader-f16', 'sm_80', 'sm_90', 'sm_90a', 'sm_100']),
    limits: {
      ...createCpuDevice().limits,
      maxBuffersPerLaunch: kind === 'webgpu' ? 10 : Infinity,
      lanes: 32,
    },
    compile: async (text: unknown) => ({ text, release() {} }),
  }) as unknown as Device

let real: readonly Device[]
beforeAll(async () => {
  // CUDA devices are absent on most machines.
  const cuda = await devices.cuda().catch(() => null)
  real = [await devices.cpu(), await devices.webgpu(), ...(cuda ? [cuda] : [])]
})
afterAll(async () => {
  for (const d of real) await d.dispose()
})

/** JSON without what it cannot say: source locations, fields without a value, maps and sets. */
const withoutSpans = (x: unknown): unknown =>
  JSON.parse(
    JSON.stringify(x, (key, value: unknown) => {
      if (key === 'span' || key === 'declared') return undefined
      if (value instanceof Map || value instanceof Set) return [...value]
      return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value
    }),
  )

const throughJson = (plan: LaunchPlan): LaunchPlan => readPlan(JSON.parse(JSON.stringify(writePlan(plan))))

/** Compilations of a file: every kernel under each schedule that needs no arguments. */
async function compilations(
  file: string,
): Promise<readonly (readonly [string, (kind: Device['kind']) => Compilation])[]> {
  const program = await load(`kernels/${file}`)
  return program.kernels.flatMap((name) => {
    const kernel = program.kernel(name)
    const names = kernel.schedules.filter((s) => !kernel.parameters(s).some((p) => p.required))
    return names.flatMap((s): [string, (kind: Device['kind']) => Compilation][] => {
      const scheduled = kernel.schedule(s)
      return 'compilation' in scheduled
        ? [[`${name}.${s}`, (kind) => runOn(scheduled.compilation, kind)]]
        : []
    })
  })
}

async function programOf(device: Device, of: (kind: Device['kind']) => Compilation) {
  try {
    return await compileOn(device, of(device.kind))
  } catch (e) {
    if (e instanceof SptError) return null
    throw e
  }
}

test.each(sample(FILES, 12))('plans of %s are the same through JSON', async (file) => {
  let pairs: Awaited<ReturnType<typeof compilations>>
  try {
    pairs = await compilations(file)
  } catch (e) {
    if (e instanceof SptError) return
    throw e
  }
  for (const [k, [name, of]] of pairs.entries())
    for (const [n, device] of [printing('webgpu'), printing('cuda'), ...real].entries()) {
      if (!isTurnOf(k + n, Math.min(6, pairs.length))) continue
      const program = await programOf(device, of)
      if (!program) continue
      const { plan } = program
      const read = throughJson(plan)
      expect(
        read.texts.map((t) => t.text),
        name,
      ).toEqual(plan.texts.map((t) => t.text))
      const { binding, runtimeLists = [], ...own } = plan
      const lists = runtimeLists.map(({ format: _, defaults: __, ...l }) => l)
      const { runtimeLists: __, ...stored } = binding
      const { binding: binding2, runtimeLists: lists2 = [], ...own2 } = read
      const { runtimeLists: ___, ...stored2 } = binding2
      expect(withoutSpans(own2), name).toEqual(withoutSpans(own))
      expect(withoutSpans(stored2), name).toEqual(withoutSpans(stored))
      expect(withoutSpans(lists2), name).toEqual(withoutSpans(lists))
      expect(withoutSpans(writePlan(read)), name).toEqual(withoutSpans(writePlan(plan)))
      if (n < 2 || (device.kind === 'webgpu' && !LONG && k % 3 !== 0)) continue
      await runsEqually(name, device, of(device.kind), program, read)
    }
})

async function runsEqually(
  name: string,
  device: Device,
  compilation: Compilation,
  program: Awaited<ReturnType<typeof compileOn>>,
  read: LaunchPlan,
): Promise<void> {
  const data = smallData(compilation)
  if (data instanceof SptError) return
  const loaded = await loadOn(device, read)
  const inputs = {
    tensors: Object.fromEntries(data.bound.given),
    params: Object.fromEntries(
      compilation.kernel.params.flatMap((p) =>
        p.measured ? [] : [[p.name, data.bound.params.get(p.name)!]],
      ),
    ),
    seed: 5,
  }
  const [bound, again] = [bindInputs(program.plan.binding, inputs), bindInputs(read.binding, inputs)]
  expect([...again.arrays], name).toEqual([...bound.arrays])
  // Atomic updates of floats have no fixed order: such results are compared with the reference instead.
  const launches = compilation.planFor(lanesOf(device))
  const unordered = unorderedSums(compilation.loops, launches, device.kind).length > 0
  const results: unknown[] = []
  for (const [p, b] of [
    [program, bound],
    [loaded, again],
  ] as const) {
    const executable = await Executable.create(p, b)
    await executable.run()
    const outputs = b.kernel.buffers.filter((x) => x.role === 'out' || x.role === 'inout')
    results.push(await Promise.all(outputs.map((x) => executable.values(x.name))))
    if (unordered) expect((await verify(compilation.source, executable)).problems, name).toEqual([])
    executable.free()
  }
  if (!unordered) expect(results[1], name).toEqual(results[0])
  loaded.release()
}
