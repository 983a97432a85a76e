/** Programs whose tensors are stored in standard formats, in compositions of them, and in random ones. */
import { readFile } from 'node:fs/promises'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { AnyFormat } from '../../src/ir/formats/format.ts'
import { evaluate } from '../../src/ir/values/evaluate.ts'
import { load } from '../../src/node.ts'
import type { Bound } from '../../src/run/bind/index.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import type { Tensor } from '../../src/storage/tensor.ts'
import { Choices } from '../support/choices.ts'
import { Skipped } from '../support/compared.ts'
import { argumentsFor, compositions } from '../support/format-gen.ts'
import { generate, type Sample } from '../support/program-gen.ts'
import { readSample } from '../support/read-sample.ts'
import { partSteps, schedule } from '../support/schedule-gen.ts'
import { bind, expectedOf } from './agree.ts'
import type { Case } from './property-cases.ts'

/** Random compositions to choose from. */
const COMPOSED = 150

export interface Pool {
  readonly text: string
  readonly standard: readonly AnyFormat[]
  readonly composed: readonly AnyFormat[]
}

const pools = new Map<number, Promise<Pool>>()

/** The formats of the kernels' files, and compositions of them; the same for the same seed, made once a process. */
export function poolOf(seed: number): Promise<Pool> {
  const known = pools.get(seed) ?? makePool(seed)
  pools.set(seed, known)
  return known
}

async function makePool(seed: number): Promise<Pool> {
  const files = await Promise.all(
    ['formats', 'formats-composed', 'formats-tensors'].map((f) => load(`kernels/${f}.spt`)),
  )
  const standard = new Map(files.flatMap((f) => [...f.formats]))
  let state = seed
  const numbers = Array.from({ length: 20_000 }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state >>> 8
  })
  const text = compositions(new Choices(numbers), COMPOSED)
  const program = parseProgram(`${await readFile('kernels/formats.spt', 'utf8')}\n${text}`)
  return {
    text,
    standard: [...standard.values()],
    composed: [...program.formats].flatMap(([name, f]) => (standard.has(name) ? [] : [f])),
  }
}

export interface FormatCase extends Case {
  /** What tensors were stored in, by name. */
  readonly formats: readonly string[]
}

/**
 * A program, a format or two, loop steps for all parts and for some, and data; nothing where the program is not
 * legal, takes none of the formats that were tried, or where the data do not fit a format that holds only some.
 */
export function formatCase(
  choices: readonly number[],
  pool: Pool,
  steps: number,
  make: (c: Choices) => Sample = generate,
): FormatCase {
  const c = new Choices(choices)
  const sample = make(c)
  const made = expected(sample)
  let { compilation } = made
  const formats: string[] = []
  const trace: string[] = []
  const wanted = 1 + c.below(2)
  const sparse =
    sample.stored ??
    Object.entries(sample.tensors).flatMap(([name, t]) => (t.kind === 'coords' ? [name] : []))
  for (let tries = 12; tries > 0 && formats.length < wanted; tries--) {
    const stored = compilation.kernel.buffers.filter(
      (b) => b.axes.length > 1 && (c.chance(20) || sparse.some((name) => b.name.startsWith(name))),
    )
    if (stored.length === 0) continue
    const { name: buffer, axes } = c.pick(stored)
    const fits = (c.chance(50) ? pool.composed : pool.standard).filter((f) => f.over.length === axes.length)
    const format = fits.length > 0 ? c.pick(fits) : c.pick(pool.standard)
    const args = argumentsFor(c, format)
    try {
      const next = compilation.onCoords({ kind: 'as', buffer, format, args })
      void next.loops
      compilation = next
      formats.push(format.name)
      trace.push(`${buffer} as ${format.name}(${args.join(', ')})`)
    } catch (e) {
      if (!(e instanceof SptError))
        throw new Error(failed(sample, [`${buffer} as ${format.name}(${args})`], e))
    }
  }
  if (formats.length === 0) throw new Skipped('no format')
  const parts = partSteps(c, compilation, sample.text)
  const scheduled = schedule(c, parts.compilation, new Map(pool.standard.map((f) => [f.name, f])), steps)
  let bound: Bound
  try {
    bound = bind(withGiven(sample, scheduled.compilation), scheduled.compilation)
  } catch (e) {
    // Formats that hold only some coordinates, rows of some lengths.
    if (e instanceof SptError && /^(format\/|bind\/width)/.test(e.diagnostics[0]!.code))
      throw new Skipped(e.diagnostics[0]!.code)
    throw new Error(failed(sample, trace, e))
  }
  const all = [...trace, ...parts.trace, ...scheduled.trace, ...declared(formats, pool)]
  return {
    sample,
    scheduled: { ...scheduled, accepted: [...parts.accepted, ...scheduled.accepted], trace: all },
    compilation: scheduled.compilation,
    bound,
    expected: made.expected,
    formats,
  }
}

function expected(sample: Sample): { compilation: Compilation; expected: Case['expected'] } {
  try {
    const compilation = readSample(sample).program.kernel().compilation
    void compilation.loops
    return { compilation, expected: expectedOf(sample, compilation) }
  } catch (e) {
    throw e instanceof SptError ? new Skipped(e.diagnostics[0]!.code) : e
  }
}

/** The declarations of the random ones among `names`. */
const declared = (names: readonly string[], pool: Pool): string[] =>
  names.flatMap((n) => pool.text.match(new RegExp(`^format ${n} .*?^}`, 'ms')) ?? [])

const failed = (sample: Sample, trace: readonly string[], e: unknown): string =>
  `${e instanceof Error ? e.stack : e}\n${sample.text.slice(sample.text.search(/^(monoid|kernel)/m))}\n${trace.join('\n')}`

/** With the lists and sets of formats: boundaries that make an empty segment, and every third coordinate. */
function withGiven(sample: Sample, c: Compilation): Sample {
  const tensors: Record<string, Tensor> = { ...sample.tensors }
  const sizes = new Map(Object.entries(sample.params))
  for (const { instance } of c.kernel.reformats)
    for (const { name, kind } of instance.given) {
      const extents = instance.over.map((a) => evaluate(a.extent, sizes))
      if (kind === 'list') {
        const n = extents[name === 'cols' ? 1 : 0]!
        const values = Int32Array.of(0, Math.floor(n / 3), Math.floor(n / 3), n)
        tensors[name] = { kind: 'dense', shape: [values.length], values, dtype: 'i32' }
      } else {
        const [m, n] = extents as [number, number]
        const held = Array.from({ length: m * n }, (_, k) => k).filter((k) => k % 3 === 0)
        const coords = [held.map((k) => Math.floor(k / n)), held.map((k) => k % n)]
        tensors[name] = {
          kind: 'coords',
          shape: [m, n],
          coords: coords.map((x) => Int32Array.from(x)),
          values: null,
          dtype: 'bool',
        }
      }
    }
  return { ...sample, tensors }
}
