/**
 * Formats keep what iterations visit, and how often: over all axes of a generated tree, over the first of them alone and in
 * nests, counted, as histograms and as marks, in every format; or the step is refused.
 */
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { AnyFormat } from '../../src/ir/formats/format.ts'
import { reference } from '../../src/reference/index.ts'
import { type Bound, bindInputs } from '../../src/run/bind/index.ts'
import type { Tensor } from '../../src/storage/tensor.ts'
import { LONG, SEED } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { argumentsFor } from '../support/format-gen.ts'
import { agreeOnStages } from './agree.ts'
import { type Pool, poolOf } from './formats.ts'
import { parameters } from './property-cases.ts'

const CASES = 100
const ROOTS = [
  'sparse_variable(m)',
  'dense_fixed(m)',
  'sparse_variable(m)',
  'sparse_variable(m) nonunique',
] as const
/** Formats some of whose axes hold just the first coordinates: they are drawn more often. */
const PREFIXES = new Set([
  'csr',
  'dcsr',
  'csf',
  'csf_n',
  'coo_n',
  'pieces_ell',
  'nm',
  'dcsc',
  'by_length',
  'dbsr',
])
const CHILDREN = [
  'sparse_variable(P, N)',
  'sparse_variable(P, N) nonunique',
  'dense_fixed(N)',
  'dense_fixed(P, N)',
  'sparse_fixed(P, N, 6)',
  'dense_variable(P, N)',
  'bitmap(P, 6)',
] as const

interface Visited {
  readonly text: string
  readonly order: number
  readonly prefix: number
  /** Whether equal coordinates stay apart: an axis of a tensor over one tree says so. */
  readonly apart: boolean
}

/** A kernel that counts visits over the first axes of a tree. */
function kernelOf(c: Choices): Visited {
  const order = c.pick([2, 2, 3])
  const prefix = 1 + c.below(order)
  const sizes = ['m', 'n', 'p'].slice(0, order)
  const root = c.pick(ROOTS)
  const kinds = sizes.map((size, k) =>
    k === 0
      ? root
      : k === 1 && root.endsWith('nonunique')
        ? `sparse_fixed(a0, ${size}, 1)`
        : c
            // One axis that says which entries stay apart.
            .pick(root.endsWith('nonunique') ? CHILDREN.filter((x) => !x.endsWith('nonunique')) : CHILDREN)
            .replace('P', `a${k - 1}`)
            .replace('N', size),
  )
  const names = sizes.map((_, k) => `a${k}`)
  const first = names.slice(0, prefix)
  const dense = first.map((_, k) => `q${k}`)
  const all = (kind: string): string => kind.repeat(prefix)
  const bodies = [
    `iterate count [${first}] as ${all('R')} { C[] += 1 }`,
    `iterate histogram [${first}] as ${all('R')} { H[${first}] += 1 }`,
    `iterate mark [${first}] as ${all('S')} { H[${first}] = 7 }`,
    `iterate mark [${first}] as ${all('S')} { H[${first}] += 1 }`,
    ...(prefix < order
      ? [
          `iterate outer [${first}] as ${all('R')} {
            C[] += 1
            iterate inner [${names.slice(prefix)}] as ${'R'.repeat(order - prefix)} { H[${first}] += A[${names}] }
          }`,
          `iterate outer [${first}] as ${all('R')} {
            iterate inner [${names[prefix]}] as R { H[${first}] += 1 }
          }`,
        ]
      : [`iterate values [${first}] as ${all('R')} { C[] += 2 * A[${names}] + 1 }`]),
  ]
  const oneTree = kinds.every((kind, k) => k === 0 || kind.includes(`(a${k - 1}`))
  return {
    order,
    prefix,
    apart: oneTree && kinds.some((kind) => kind.endsWith('nonunique')),
    text: `kernel k(${sizes.map((s) => `${s}: size`)}) {
  ${names.map((a, k) => `axis ${a} = ${kinds[k]}`).join('\n  ')}
  ${dense.map((q, k) => `axis ${q} = dense_fixed(${sizes[k]})`).join('\n  ')}
  buffer A: i32[${names}] in
  buffer C: i32[] out
  buffer H: i32[${dense}] out
  iterate zero [] { C[] = 0 }
  ${c.pick(bodies)}
}`,
  }
}

/** `repeated`: some coordinates several times. */
function tensorOf(
  c: Choices,
  order: number,
  repeated: boolean,
): { shape: number[]; coords: number[][]; values: number[] } {
  const shape = Array.from({ length: order }, () => 1 + c.below(6))
  const size = shape.reduce((a, b) => a * b, 1)
  const share = c.pick([30, 60, 10, 100])
  const times = repeated ? c.pick([0, 20, 60]) : 0
  const held = Array.from({ length: size }, (_, k) => k).flatMap((k) =>
    c.chance(share) ? (c.chance(times) ? [k, k] : [k]) : [],
  )
  const strides = shape.map((_, d) => shape.slice(d + 1).reduce((a, b) => a * b, 1))
  return {
    shape,
    coords: strides.map((s, d) => held.map((e) => Math.floor(e / s) % shape[d]!)),
    values: held.map((_, k) => 1 + (k % 5)),
  }
}

const given = (f: AnyFormat): boolean => f.params.some((p) => p.kind === 'list' || p.kind === 'set')

let pool: Pool
beforeAll(async () => {
  pool = await poolOf(SEED)
})

test('every coordinate is visited equally often, or the format is rejected', () => {
  const seen = new Map<string, number>()
  fc.assert(
    fc.property(fc.noBias(choiceNumbers(260)), (choices) => {
      const c = new Choices(choices)
      const { text, order, prefix, apart } = kernelOf(c)
      const { shape, coords, values } = tensorOf(c, order, apart)
      const params = Object.fromEntries(shape.map((n, d) => [['m', 'n', 'p'][d]!, n]))
      const fits = (c.chance(25) ? pool.composed : pool.standard).filter(
        (f) => (f.kind === 'family' || f.over.length <= order) && !given(f),
      )
      const likely = fits.filter((f) => PREFIXES.has(f.name))
      const format = likely.length > 0 && c.chance(40) ? c.pick(likely) : c.pick(fits)
      const args = argumentsFor(c, format)
      const A: Tensor = {
        kind: 'coords',
        shape,
        coords: coords.map((x) => Int32Array.from(x)),
        values: Int32Array.from(values),
        dtype: 'i32',
      }
      let bound: Bound
      let compilation: ReturnType<typeof parseProgram.prototype.kernel>['compilation']
      try {
        const source = parseProgram(text).kernel().compilation
        void source.loops
        try {
          compilation = source.onCoords({ kind: 'as', buffer: 'A', format, args })
          void compilation.loops
        } catch (e) {
          if (e instanceof SptError) return
          throw e
        }
        bound = bindInputs(compilation.kernel, { tensors: { A }, params })
      } catch (e) {
        if (e instanceof SptError) return
        throw new Error(`${e instanceof Error ? e.stack : e}\n${text}\nA as ${format.name}(${args})`)
      }
      try {
        agreeOnStages(
          compilation,
          bound,
          reference(compilation.source, {
            params,
            buffers: { A: { coords, values, duplicates: apart ? 'keep' : 'sum' } },
          }).buffers,
        )
      } catch (e) {
        const data = JSON.stringify({ shape, coords })
        throw new Error(
          `${e instanceof Error ? e.message : e}\n${text}\n${data}\nA as ${format.name}(${args})`,
        )
      }
      const what = prefix === order ? 'whole' : /outer/.test(text) ? 'nest' : 'prefix'
      seen.set(what, (seen.get(what) ?? 0) + 1)
      seen.set(`${what} ${format.name}`, (seen.get(`${what} ${format.name}`) ?? 0) + 1)
    }),
    parameters(CASES),
  )
  // Refusals are not all there is.
  if (LONG) for (const what of ['whole', 'prefix', 'nest']) expect(seen.get(what)).toBeGreaterThan(CASES / 40)
})
