/**
 * A kernel on a tensor that a device brought into a format computes what it does on one that the host did, and what the host
 * refuses is refused: whatever the format asks of elements is asked where they are.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { bindResident, convertForKernel, upload } from '../../src/device.ts'
import type { Binding, Built, CoordTensor, Kernel, Tensor } from '../../src/node.ts'
import { coords, SptError } from '../../src/node.ts'
import { DEVICES, opened } from '../convert/devices.ts'
import { costly } from '../support/cases.ts'

const kernel = `
kernel twice(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: i32[i, j] in
  buffer x: i32[jd] in
  buffer D: i32[i, j] out
  buffer y: i32[i] out
  iterate s [i, j] as SS { D[i, j] = A[i, j] * 2 }
  iterate r [i, j] as SR { y[i] += A[i, j] * x[j] }
}
kernel sums(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer D: i32[i, j] in
  buffer z: i32[i] out
  iterate s [i, j] as SR { z[i] += D[i, j] }
}
format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`

interface Level {
  readonly width: string
  readonly padding: string
  readonly mask: boolean
}

/** Formats with a level of fixed width, under rows of each kind. */
const PARENTS: readonly ((l: Level) => string)[] = [
  ({ width, padding }) => `
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, ${width}) ${padding}
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)`,
  ({ width, padding, mask }) => `
  axis io = dense_fixed(ceildiv(i, 2))
  axis jo = sparse_fixed(io, j, ${width}) ${padding}
  axis ii = dense_fixed(jo, 2)
  map (i, j) -> (i / 2, j, i % 2)
  inverse (io, jo, ii) -> (io * 2 + ii, jo)
  ${mask ? 'mask held' : ''}`,
  ({ width, padding }) => `
  sort i by -count(j by i) -> (place, row)
  axis io = dense_fixed(i)
  axis go = dense_fixed(io, ceildiv(j, 4))
  axis jo = sparse_fixed(go, 4, ${width === 'j' ? 'min(j, 4)' : width}) ${padding}
  map (i, j) -> (place[i], j / 4, j % 4)
  inverse (io, go, jo) -> (row[io], go * 4 + jo)`,
  ({ width, padding }) => `
  axis io = sparse_variable(i)
  axis jo = sparse_fixed(io, j, ${width}) ${padding}
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)`,
  ({ width, padding, mask }) => `
  axis io = dense_fixed(ceildiv(i, 2))
  list jo = sparse_fixed(io, j, ${width === 'w' ? '6' : width}) ${padding === 'padded with 0' ? '' : padding}
  axis ii = dense_fixed(io, 2)
  axis ji = dense_fixed(ii, jo)
  map (i, j) -> (i / 2, j, i % 2, position(jo))
  inverse (io, ii, ji) -> (io * 2 + ii, jo[ji])
  ${mask ? 'mask held' : ''}`,
]

const formats = fc
  .record({
    parent: fc.constantFrom(...PARENTS),
    width: fc.constantFrom('4', '6', 'j', 'w'),
    padding: fc.constantFrom('padded with last', 'padded with last', 'padded with 0', '', 'compact'),
    mask: fc.boolean(),
    parts: fc.constantFrom('one', 'one', 'long', 'halves'),
    given: fc.boolean(),
  })
  .map(({ parent, parts, given, ...level }) => {
    const wide = level.width === 'w' ? '(w: size)' : ''
    const text = `format fixed${wide} over (i, j) {${parent(level)}\n}`
    const own = level.width === 'w' ? 'fixed(w)' : 'fixed'
    const composed = {
      one: '',
      long: `part long = ${own} where (count(j by i) > 1)\n  part csr`,
      halves: `partition i into 2 {\n    part ${own}\n  }`,
    }[parts]
    const more = composed ? `\nformat composed${wide} over (i, j) {\n  ${composed}\n}` : ''
    // A device measures each part by itself: parts that share a size are given it.
    const told = given || composed !== ''
    return { text: text + more, name: composed ? 'composed' : 'fixed', args: wide ? ['w'] : [], given: told }
  })

/** Mostly with an element in each row. */
const matrices = fc
  .record({ m: fc.integer({ min: 1, max: 5 }), n: fc.integer({ min: 1, max: 6 }), some: fc.boolean() })
  .chain(({ m, n, some }) =>
    fc
      .array(fc.uniqueArray(fc.nat(n - 1), { minLength: some ? 0 : 1 }), { minLength: m, maxLength: m })
      .map((rows) => {
        const [is, js] = [rows.flatMap((r, i) => r.map(() => i)), rows.flat()]
        return coords(
          [m, n],
          [is, js],
          Int32Array.from(is, (_, e) => e + 1),
        )
      }),
  )

const entries = (t: Tensor | undefined): string[] => {
  if (t?.kind !== 'coords') throw new Error(`a ${t?.kind} tensor`)
  return Array.from(t.values!, (v, e) => `${t.coords.map((c) => c[e]).join(' ')}: ${v}`).sort()
}

/** What a prepared kernel answers, or why there is none. */
async function answer(make: () => Promise<Binding>): Promise<unknown> {
  let prepared: Binding | undefined
  try {
    prepared = await make()
    await prepared.run()
    const { y, D } = await prepared.outputs()
    const A = await prepared.get('A')
    return { y: [...y!.values!], D: entries(D), A: entries(A) }
  } catch (error) {
    if (!(error instanceof SptError)) throw error
    return error.diagnostics[0]!.code
  } finally {
    prepared?.free()
  }
}

const compiled = (text: string, name: string, args: readonly string[]): Kernel | null => {
  try {
    const made = parseProgram(kernel + text)
      .kernel('twice')
      .as('A', name, ...args)
    return made.compilation.plan ? made : null
  } catch (error) {
    if (error instanceof SptError && error.diagnostics[0]!.code === 'schedule/format-padding') return null
    throw error
  }
}

/** The sparse result of `twice` stays on the device, where `sums` reads it after each run. */
async function resultStays(
  twice: Built,
  from: Awaited<ReturnType<typeof upload>>,
  A: CoordTensor,
  of: {
    readonly x: Int32Array
    readonly name: string
    readonly args: readonly string[]
    readonly text: string
    readonly params: Record<string, number>
  },
): Promise<void> {
  const sums = await parseProgram(kernel + of.text)
    .kernel('sums')
    .as('D', of.name, ...of.args)
    .build(twice.device)
  const to = { sizes: new Map(Object.entries(of.params)) }
  const [parts, D] = [
    await convertForKernel(twice, 'A', from, to),
    await convertForKernel(sums, 'D', from, to),
  ]
  const first = await bindResident(twice, { A: parts, D, x: of.x })
  const second = await bindResident(sums, { D })
  await first.run()
  await second.run()
  const expected = new Int32Array(A.shape[0]!)
  A.coords[0]!.forEach((i, e) => {
    expected[i] = expected[i]! + 2 * A.values![e]!
  })
  expect((await second.get('z')).values).toEqual(expected)
  expect((await first.verify()).problems).toEqual([])
  for (const x of [second, first, D, parts]) x.free()
}

describe.each(DEVICES)('on $name', ({ kind, open }) => {
  const on = opened(open)
  test('a kernel on a resident tensor in a format of fixed width equals one from the host', async () => {
    await fc.assert(
      fc.asyncProperty(formats, matrices, async ({ text, name, args, given }, A) => {
        const of = compiled(text, name, args)
        fc.pre(of !== null)
        const k = await of.build(on.device)
        const x = Int32Array.from({ length: A.shape[1]! }, (_, at) => at + 1)
        const params = given && args.length > 0 ? { w: 6 } : {}
        const from = await upload(on.device, A)
        const there = await answer(async () => {
          const parts = await convertForKernel(k, 'A', from, { sizes: new Map(Object.entries(params)) })
          return bindResident(k, { A: parts, x })
        })
        expect(there).toEqual(await answer(() => k.bind({ A, x, ...params })))
        if (typeof there === 'object') await resultStays(k, from, A, { x, name, args, text, params })
        from.free()
      }),
      { numRuns: costly(kind === 'webgpu' ? 2 : 12) },
    )
  })
})
