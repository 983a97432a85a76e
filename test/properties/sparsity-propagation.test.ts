/** What the attributes of tensors claim holds of data; where they allow a mask, results stay what the reference computes. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sparsityAttributes, type TensorMask } from '../../src/analysis/sparsity/attributes.ts'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { type Attributed, attributed, boundInputs, valuesOf } from '../support/attributes-gen.ts'
import { Choices } from '../support/choices.ts'
import { agreeOnAll, agreeOnDevice } from './agree.ts'
import { LIVE } from './live-gen.ts'
import { numbers, parameters, runs } from './property-cases.ts'

type Values = Readonly<Record<string, readonly number[]>>

const plain = (k: Kernel1, s: Attributed, buffers: Values): Values =>
  Object.fromEntries(
    Object.entries(reference(k, { params: s.sizes, buffers }).buffers).map(([name, r]) => [
      name,
      Array.from(r.values, (x) => x + 0),
    ]),
  )

/** Everything that is written is a result. */
const shown = (k: Kernel1): Kernel1 => ({
  ...k,
  buffers: k.buffers.map((b) => (b.role === 'local' ? { ...b, role: 'out' } : b)),
})

/** 0 · ∞ is passed over as a structural zero is, and what starts at −∞ is what nothing was combined into. */
const hasNaN = (k: Kernel1, s: Attributed, inputs: Values): boolean =>
  Object.values(plain(shown(k), s, inputs)).some((xs) => xs.some(Number.isNaN))

/** Data without such products. */
function finite(c: Choices, s: Attributed, k: Kernel1): Values {
  for (let tries = 0; ; tries++) {
    const inputs = valuesOf(c, s)
    if (!hasNaN(k, s, inputs)) return inputs
    fc.pre(tries < 5)
  }
}

/** Of each element, whether the mask is at its fill there. */
function maskedValues(
  s: Attributed,
  tensor: string,
  { mask, dimensions }: TensorMask,
  values: Values,
): readonly boolean[] {
  const [shape, of] = [s.shapes[tensor]!, s.shapes[mask]!]
  const size = shape.reduce((x, y) => x * y, 1)
  return Array.from({ length: size }, (_, at) => {
    let rest = at
    const index = shape.map(() => 0)
    for (let d = shape.length - 1; d >= 0; d--) {
      index[d] = rest % shape[d]!
      rest = Math.floor(rest / shape[d]!)
    }
    const place = dimensions.reduce((sum, x, k) => sum * of[k]! + index[x.dimension]!, 0)
    return values[mask]![place] === 0
  })
}

const seen = {
  value: 0,
  constant: 0,
  needed: 0,
  unread: 0,
  masks: 0,
  refused: 0,
  live: 0,
  carried: 0,
  dropped: 0,
  kept: 0,
}

const property = (usual: number, check: (c: Choices, s: Attributed, k: Kernel1) => void | Promise<void>) =>
  fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const c = new Choices(choices)
      const s = attributed(c)
      let kernel: Kernel1
      try {
        kernel = parseProgram(s.text).kernel().source
      } catch (e) {
        if (e instanceof SptError) return
        throw e
      }
      try {
        await check(c, s, kernel)
      } catch (e) {
        if (e instanceof fc.PreconditionFailure) throw e
        throw new Error(`${e instanceof Error ? e.stack : e}\n${s.text}\n${JSON.stringify(s.sizes)}`)
      }
    }),
    parameters(usual),
  )

test('propagated attributes hold for the data', async () => {
  await property(150, (c, s, kernel) => {
    const { tensors } = sparsityAttributes(kernel)
    for (let round = 0; round < 3; round++) {
      const inputs = finite(c, s, kernel)
      const all = { ...inputs, ...plain(shown(kernel), s, inputs) }
      const results = plain(kernel, s, inputs)
      for (const t of tensors) {
        const told = `${JSON.stringify(t, (key, v) => (key === 'span' ? undefined : v))} ${JSON.stringify(all)}`
        if (t.constant !== null) for (const x of all[t.tensor]!) expect(x, told).toBe(t.constant)
        if (t.tensor !== 'O')
          for (const a of t.maskedValues) {
            seen[a.zero ? 'value' : 'constant']++
            for (const [k, there] of maskedValues(s, t.tensor, a, all).entries())
              if (there) expect(all[t.tensor]![k], told).toBe(a.value)
          }
        if (!s.inputs.includes(t.tensor)) continue
        const where = t.isUsed
          ? t.neededWithin.map((a) => maskedValues(s, t.tensor, a, all))
          : [all[t.tensor]!.map(() => true)]
        for (const there of where) {
          seen[t.isUsed ? 'needed' : 'unread']++
          const other = inputs[t.tensor]!.map((x, k) => (there[k] ? c.pick([5, 0, -2]) : x))
          // A mask that is written from it must be what it was.
          const changed = { ...inputs, [t.tensor]: other }
          if (hasNaN(kernel, s, changed)) continue
          expect(plain(kernel, s, changed), `${told} ${other}`).toEqual(results)
        }
      }
    }
  })
  for (const what of ['value', 'constant', 'needed', 'unread'] as const)
    expect(seen[what], what).toBeGreaterThan(0)
})

/** Under some masks that are legal, those of what reads a tensor first. */
function masked(c: Choices, s: Attributed, text = s.text): { compilation: Compilation; steps: string[] } {
  let kernel = parseProgram(text).kernel()
  const steps: string[] = []
  let { iterations } = sparsityAttributes(kernel.compilation.kernel)
  for (const it of kernel.inspect.attributes.iterations.toReversed())
    for (const name of c.shuffle([...s.inputs, ...kernel.source.buffers.map((b) => b.name)]).slice(0, 4)) {
      const whole = iterations.find((x) => x.name === it.name)!
      const allowed = whole.masks.some((m) => m.mask === name)
      try {
        kernel = kernel.mask(it.name, name)
        steps.push(`mask ${it.name} by ${name}`)
        iterations = sparsityAttributes(kernel.compilation.kernel).iterations
        expect(allowed, steps.at(-1)).toBe(true)
        seen.masks++
      } catch (e) {
        if (!(e instanceof SptError)) throw e
        expect(e.diagnostics[0]!.code).toBe('schedule/mask')
        expect(allowed, `${it.name} by ${name}: ${e.message}`).toBe(false)
        seen.refused++
      }
    }
  return { compilation: kernel.compilation, steps }
}

test('masks keep results', async () => {
  await property(100, (c, s, kernel) => {
    const { compilation, steps } = masked(c, s)
    for (let round = 0; round < 3; round++) {
      const inputs = finite(c, s, kernel)
      expect(plain(compilation.kernel, s, inputs), `${steps} ${JSON.stringify(inputs)}`).toEqual(
        plain(kernel, s, inputs),
      )
    }
  })
  for (const what of ['masks', 'refused'] as const) expect(seen[what], what).toBeGreaterThan(0)
})

/** Without iterations that are not needed, the last ones first, some of the time. */
function dropped(c: Choices, kernel: Kernel): Kernel {
  return kernel.inspect.attributes.iterations.toReversed().reduce((k, it) => {
    if (!c.chance(70)) return k
    try {
      const next = k.drop(it.name)
      if (k === kernel) expect(it.isDead, it.name).toBe(true)
      seen.dropped++
      return next
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      expect(e.diagnostics[0]!.code).toBe('schedule/drop')
      if (k === kernel) expect(it.isDead, it.name).toBe(false)
      seen.kept++
      return k
    }
  }, kernel)
}

test('removing dead elements keeps results', async () => {
  await property(100, (c, s, kernel) => {
    const whole = parseProgram(s.text).kernel()
    const left = dropped(c, whole)
    for (let round = 0; round < 3; round++) {
      const inputs = finite(c, s, kernel)
      expect(plain(left.compilation.kernel, s, inputs), `${left.trace} ${JSON.stringify(inputs)}`).toEqual(
        plain(kernel, s, inputs),
      )
    }
  })
  for (const what of ['dropped', 'kept'] as const) expect(seen[what], what).toBeGreaterThan(0)
})

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

/**
 * Masks of M in iterations that take it, and then the structure of M as a format finds it, where one can: some of those that
 * take it go over whole blocks.
 */
function found(c: Choices, s: Attributed, format = c.pick(['blocks', 'panels'] as const)): Compilation {
  let kernel = parseProgram(`${LIVE.blocks.text}\n${LIVE.panels.text}\n${s.text}`).kernel()
  if (c.chance(30)) kernel = dropped(c, kernel)
  const carried: string[] = []
  for (const it of kernel.inspect.attributes.iterations.toReversed())
    try {
      const next = kernel.mask(it.name, 'M')
      if (c.chance(40)) carried.push(it.name)
      else kernel = next
    } catch (e) {
      if (!(e instanceof SptError)) throw e
    }
  try {
    kernel =
      carried.length > 0 || c.chance(50)
        ? kernel.live('M', format, 2, 2, { for: carried })
        : kernel.as('M', format, 2, 2)
    void kernel.compilation.loops
    seen.live++
    if (carried.length > 0 && kernel.trace.at(-1)!.includes(' for ')) seen.carried++
  } catch (e) {
    if (!(e instanceof SptError)) throw e
  }
  return kernel.compilation
}

test('results agree at every stage and on the cpu, also if the mask is a live structure', async () => {
  await property(75, (c, s, kernel) => agreeOnAll(found(c, s), boundInputs(s, finite(c, s, kernel))))
  expect(seen.live).toBeGreaterThan(0)
  if (runs(75) >= 75) expect(seen.carried).toBeGreaterThan(0)
}, 3_600_000)

test('the same holds on WebGPU', async () => {
  await property(6, async (c, s, kernel) => {
    const compilation = found(c, s, 'panels').parallel()
    const bound = bindInputs(compilation.kernel, boundInputs(s, finite(c, s, kernel)))
    const expected = reference(compilation.source, referenceInputs(compilation.source, bound)).buffers
    await agreeOnDevice(webgpu, compilation, bound, expected)
  })
}, 3_600_000)
