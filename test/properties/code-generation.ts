/**
 * A program under a long schedule, down to the texts for every target: all of it is made, or refused with a diagnostic.
 * Whatever else is thrown is a bug of the compiler, wherever it happens.
 */

import { unrolledSize } from '../../src/analysis/loops/segmented-loops.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { verifyPass, verifyStage } from '../../src/api/stages/stage-verifier.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import type { ModuleText } from '../../src/backends/targets/index.ts'
import type { AnyFormat } from '../../src/ir/formats/format.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import type { LowerOptions } from '../../src/lower/passes.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import type { Choices } from '../support/choices.ts'
import { compositions } from '../support/format-gen.ts'
import { standard } from '../support/packaged-formats.ts'
import type { Sample } from '../support/program-gen.ts'
import { FORMATS } from '../support/program-parts.ts'
import { longSchedule, partSteps, type Scheduled, withTrace } from '../support/schedule-gen.ts'

export interface Emitted {
  readonly scheduled: Scheduled
  /** Codes of what was refused after the schedule, with `pass` or the target. */
  readonly refused: readonly string[]
  readonly texts: number
  /** Whether the schedule could be said as text, and was. */
  readonly readBack: boolean
}

const PLANS: readonly LowerOptions[] = [{}, { lanes: 4, together: true }, { lanes: 32 }]
const TARGETS: readonly ModuleText['target'][] = ['js', 'wgsl', 'cuda']

/** Characters of text for each character of the loops as printed, with copies that unrolling makes. */
const MOST = 40

/** What parts of compositions are stored in. */
const LEAVES = standard(
  ...['csr', 'coo', 'dcsr', 'csc', 'ell', 'bsr', 'sell', 'rows_ell', 'pieces_ell', 'sr_bcrs', 'dia'],
  ...['bitmap_blocks', 'dbsr', 'dcsc', 'ragged', 'nm', 'band', 'strided'],
)

/** `undefined` where the program itself is refused. */
export function emits(c: Choices, sample: Sample): Emitted | undefined {
  const composed = c.chance(30) ? compositions(c, 2) : ''
  const text = composed === '' ? sample.text : `${sample.text.replace(FORMATS, LEAVES)}\n${composed}`
  const made = allowed(() => {
    const program = parseProgram(text)
    const { compilation } = program.kernel()
    void compilation.loops
    return { program, compilation }
  })
  if (typeof made === 'string') return undefined
  const { formats } = made.program
  const trace: string[] = []
  const accepted: string[] = []
  let { compilation } = made
  const add = (s: Scheduled): void => {
    compilation = s.compilation
    accepted.push(...s.accepted)
    trace.push(...s.trace)
  }
  if (composed !== '') {
    add(
      stored(
        c,
        compilation,
        [...formats.values()].filter((f) => f.name.startsWith('composed')),
      ),
    )
    add(partSteps(c, compilation, text))
  }
  const low = composed === '' ? 12 : 6
  add(longSchedule(c, compilation, formats, low, 2 * low + 1))
  const scheduled: Scheduled = { compilation, accepted, trace }
  try {
    const readBack = readsBack(text, scheduled)
    return { scheduled, readBack, ...carry(compilation) }
  } catch (e) {
    throw withTrace(e, [text.slice(text.search(/^(monoid|kernel)/m)), ...scheduled.trace])
  }
}

/** A buffer in one of these formats, if any can be. */
function stored(c: Choices, start: Compilation, formats: readonly AnyFormat[]): Scheduled {
  for (const format of c.shuffle(formats))
    for (const { name } of c.shuffle(start.kernel.buffers.filter((b) => b.axes.length > 1))) {
      const compilation = allowed(() => {
        const next = start.onCoords({ kind: 'as', buffer: name, format, args: [] })
        void next.loops
        return next
      })
      if (typeof compilation !== 'string')
        return { compilation, accepted: ['coords.as'], trace: [`${name} as ${format.name}`] }
    }
  return { compilation: start, accepted: [], trace: [] }
}

/** Every pass keeps what verifiers know; every text is there, and not too long, or refused. */
export function carry(k: Compilation): Pick<Emitted, 'refused' | 'texts'> {
  verifyStage(k.kernel)
  verifyStage(k.loops)
  const refused: string[] = []
  const note = (what: string, result: unknown): void => {
    if (typeof result === 'string') refused.push(`${what} ${result}`)
  }
  for (const options of PLANS) {
    let at = ''
    const plan = allowed(() =>
      k.observe((pass, result) => {
        at = pass
        verifyPass(pass, result)
      }, options),
    )
    note(`after ${at}`, plan)
  }
  const { body } = k.loops
  const size = print2(k.loops).length * (unrolledSize(body) / unrolledSize(body, () => 1))
  let texts = 0
  for (const target of TARGETS) {
    const modules = allowed(() => k.texts(target))
    note(target, modules)
    if (typeof modules === 'string') continue
    const length = modules.reduce((n, m) => n + m.text.length, 0)
    if (length > MOST * (1000 + size)) throw new Error(`${length} characters of ${target} from ${size}`)
    texts++
  }
  return { refused, texts }
}

/** The same loops come from the schedule as text; false where loops have no names, or sizes are data's. */
function readsBack(text: string, { compilation, trace }: Scheduled): boolean {
  const { kernel } = compilation
  // The first of these on loops acts on coordinates, as text.
  const first = compilation.loopSteps[0]?.kind
  if (first === 'fuse' || first === 'reorder') return false
  // Loops whose name others have too are known by handles.
  if (JSON.stringify(compilation.loopSteps).includes('{"var":')) return false
  const program = parseProgram(`${text}\nschedule ${kernel.name}.written {\n${trace.join('\n')}\n}\n`)
  const again = program
    .kernel(kernel.name)
    .steps('written')
    .reduce((k, s) => k.step(s), program.kernel(kernel.name).compilation)
  if (print2(again.loops) !== print2(compilation.loops))
    throw new Error(`as text, the schedule makes\n${print2(again.loops)}`)
  return true
}

/** What `f` gives, or the code under which it is refused. */
function allowed<T extends object>(f: () => T): T | string {
  try {
    return f()
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    for (const d of e.diagnostics)
      if (!/^[a-z0-9]+\/[a-z0-9-]+$/.test(d.code) || d.message === '')
        throw new Error(`a refusal without code or message: ${JSON.stringify(d)}`)
    return e.diagnostics[0]!.code
  }
}
