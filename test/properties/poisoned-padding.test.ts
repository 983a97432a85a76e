/**
 * Padding never takes part: positions without a coordinate hold NaN, and results stay equal to the last bit. What
 * lies inside of the tensor is no padding: a block's absent elements are stored values, equal to the fill.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { StoredAxis } from '../../src/ir/coordinates/axis.ts'
import type { FormatInstance } from '../../src/ir/formats/format.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { type Device, devices, load, SptError } from '../../src/node.ts'
import type { Bound } from '../../src/run/bind/index.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { toCoords } from '../../src/storage/entries/stored-coords.ts'
import type { ValueArray } from '../../src/storage/tensor.ts'
import { CHOICES, FORMATS, KERNELS } from '../bind/programs.ts'
import { apply, inputs, type Sample, samples } from '../bind/support.ts'
import { costly } from '../support/cases.ts'
import { mapped } from '../support/host-frame.ts'

const program = await load(`${FORMATS}${KERNELS}
kernel most(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer M: f32[i] out
  iterate most [i, j] as SR {
    M[i] max= A[i, j]
  }
}
`)

/** Positions of a part that stand for a coordinate of the tensor. */
function real(
  bound: Bound,
  buffer: string,
  instance: FormatInstance,
  over: readonly StoredAxis[],
): Set<number> {
  const storage = bound.storages.get(buffer)!
  const iota = Float64Array.from({ length: storage.size }, (_, q) => q)
  const { coords, values } = toCoords(storage, iota, 'f64')
  const column = new Map(storage.axes.map((a, d) => [a.name, coords[d]!]))
  const tables = new Map(
    instance.tables.map((t) => [
      t.name,
      { values: bound.arrays.get(t.name) as Int32Array, fill: evaluate(t.fill, bound.params) },
    ]),
  )
  const columns = Object.fromEntries(instance.order.map((a) => [a, column.get(a)!]))
  const old = mapped(instance.inverse, columns, bound.params, tables)
  const extents = over.map((a) => evaluate(a.extent, bound.params))
  const out = new Set<number>()
  values!.forEach((q, e) => {
    if (old.every((c, d) => c[e]! >= 0 && c[e]! < extents[d]!)) out.add(q)
  })
  return out
}

function poisoned(bound: Bound): { readonly bound: Bound; readonly slots: number } {
  const arrays = new Map<string, ValueArray>(bound.arrays)
  let slots = 0
  const [r] = bound.kernel.reformats
  r!.instance.parts.forEach(({ instance }, k) => {
    for (const { parts } of r!.buffers) {
      const values = bound.arrays.get(parts[k]!)?.slice()
      if (!values) continue
      const kept = real(bound, parts[k]!, instance, r!.from as StoredAxis[])
      for (let q = 0; q < values.length; q++)
        if (!kept.has(q)) {
          values[q] = Number.NaN
          slots++
        }
      arrays.set(parts[k]!, values)
    }
  })
  return { bound: { ...bound, arrays }, slots }
}

const cases = program.kernels.flatMap((name) => CHOICES.map((choice) => [name, choice] as const))

/** Runs each case on poisoned data; the formats that had padding, and the refusals. */
async function ignored(
  device: Device,
  chosen: typeof cases,
  usual: number,
): Promise<{ readonly poisonedIn: ReadonlySet<string>; readonly refused: readonly string[] }> {
  const poisonedIn = new Set<string>()
  const refused: string[] = []
  for (const [name, choice] of chosen) {
    let kernel: ReturnType<typeof apply>
    try {
      kernel = apply(program.kernel(name), choice)
    } catch (e) {
      // An absent element of a block would count.
      if (!(e instanceof SptError)) throw e
      refused.push(`${name} ${choice[0]}: ${e.diagnostics[0]!.code}`)
      continue
    }
    const compiled = await kernel.build(device)
    const poisonedWith = (s: Sample) => {
      const given = inputs(name, choice, s)
      const { A, V, B, X, Y, ...rest } = given.tensors!
      return poisoned(compiled.bindOnHost(name === 'most' ? { A: A!, ...rest } : given.tensors!))
    }
    // What the property is about occurs: from one seed for ever.
    if (fc.sample(samples, { numRuns: 20, seed: 5 }).some((s) => poisonedWith(s).slots > 0))
      poisonedIn.add(choice[0])
    await fc.assert(
      fc.asyncProperty(samples, async (s) => {
        const { bound } = poisonedWith(s)
        const prepared = await compiled.upload(bound)
        const v = await prepared.verify()
        prepared.free()
        expect(v.problems, `${name} ${choice}`).toEqual([])
        expect(v.maxAbsoluteError, `${name} ${choice}`).toBe(0)
      }),
      { numRuns: costly(usual) },
    )
  }
  return { poisonedIn, refused }
}

test('NaN in padding has no effect', async () => {
  const device = await devices.cpu()
  const { poisonedIn, refused } = await ignored(device, cases, 2)
  // The property says something of every format that has padding.
  const without = ['csr', 'coo', 'ell_at', 'vbr', 'bitmap_blocks', 'coo where (top(2 by i)) + csr']
  expect([...poisonedIn].sort()).toEqual(
    CHOICES.map(([format]) => format)
      .filter((f, k, all) => !without.includes(f) && all.indexOf(f) === k)
      .sort(),
  )
  // A maximum would see the absent elements of blocks, and padding that has a coordinate.
  const seen = ['ell_at', 'bsr', 'sr_bcrs', 'dia', 'vbr', 'band(1, 1) + ell']
  expect(refused.filter((r) => !r.includes(' where '))).toEqual(
    seen.map((f) => `most ${f}: schedule/format-padding`),
  )
  expect(refused.filter((r) => r.includes(' where ')).every((r) => r.endsWith('format-padding'))).toBe(true)
  await device.dispose()
})

test('nor on webgpu', async () => {
  const device = await createNodeWebGpu()
  // SwiftShader compiles slowly.
  const few = CHOICES.filter(([format]) => ['ell', 'sell', 'sr_bcrs', 'dia', 'hyb'].includes(format))
  const { poisonedIn } = await ignored(
    device,
    few.map((choice) => ['multiply', choice] as const),
    2,
  )
  expect(poisonedIn.size).toBe(5)
  await device.dispose()
})
