/** Loop steps from outside: what is a step at all, and traces as JSON. */
import { type Advice, type Diagnostic, fail } from '../ast/diagnostic.ts'
import type { LoopStep } from './steps.ts'

/** A trace as JSON; spans, which belong to a source text, stay behind. */
export const traceToJson = (trace: readonly LoopStep[]): string =>
  JSON.stringify(trace.map(({ span: _, ...step }) => step))

/** Reads what `traceToJson` wrote. Throws `SptError` (`schedule/bad-trace`) on anything else. */
export function traceFromJson(text: string): readonly LoopStep[] {
  let data: unknown
  try {
    data = JSON.parse(text)
  } catch {
    data = undefined
  }
  if (!Array.isArray(data))
    return fail({
      code: 'schedule/bad-trace',
      message: 'this is no trace of a schedule',
      expected: 'a list of steps as JSON',
    })
  data.forEach((s: unknown, k) => {
    const problem = stepProblem(s)
    if (problem)
      fail({
        ...problem,
        code: 'schedule/bad-trace',
        message: `step ${k + 1} of the trace: ${problem.message}`,
      })
  })
  return data as LoopStep[]
}

/** What a field may be: a test, and in words. */
type Field = readonly [(x: unknown) => boolean, string]

const name: Field = [(x) => typeof x === 'string', 'a name']
const number: Field = [(x) => typeof x === 'number', 'a number']
const yesOrNo: Field = [(x) => typeof x === 'boolean', 'true or false']
const loop: Field = [
  (x) => name[0](x) || (typeof x === 'object' && x !== null && name[0]((x as { var?: unknown }).var)),
  'a loop: its name, or a handle',
]
const scope: Field = [(x) => x === 'shared' || x === 'register', "'shared' or 'register'"]
const declared: Field = [
  (x) => typeof x === 'object' && x !== null && name[0]((x as { name?: unknown }).name),
  'one that a program declares',
]
const listOf = ([test, what]: Field, length?: number): Field => [
  (x) => Array.isArray(x) && x.every(test) && (length === undefined || x.length === length),
  `a list${length === undefined ? '' : ` of ${length}`}, each ${what}`,
]
const optional = ([test, what]: Field): Field => [(x) => x === undefined || test(x), `${what}, or nothing`]
const binding: Field = [
  (x) => {
    const b = x as { loop?: unknown; to?: unknown } | null
    return (
      typeof b === 'object' && b !== null && loop[0](b.loop) && /^(block|thread)\.[xyz]$/.test(String(b.to))
    )
  },
  "{ loop: …, to: 'block.x' }",
]
const cacheFields = { memory: optional(declared), buffer: name, at: loop, scope, into: optional(name) }

const FIELDS: { readonly [K in LoopStep['kind']]: Readonly<Record<string, Field>> } = {
  split: { loop, by: number, into: optional(listOf(name, 2)) },
  fuse: { loops: listOf(loop), into: optional(name) },
  reorder: { loops: listOf(loop) },
  serpentine: { loop, by: number },
  tile: { loops: listOf(loop), by: listOf(number), into: optional(listOf(name)) },
  bind: { bindings: listOf(binding) },
  unroll: { loop, by: optional(number), predicated: optional(yesOrNo) },
  vectorize: { loop },
  require: {
    size: name,
    relation: [(x) => x === 'multiple' || x === 'equal', "'multiple' or 'equal'"],
    by: number,
  },
  tensorize: { loop, instr: declared },
  cache_read: {
    ...cacheFields,
    transposed: optional(yesOrNo),
    stride: optional(number),
    by: optional(number),
    padded: optional(number),
  },
  pipeline: { loop, by: number },
  cluster: { loop, by: number },
  cache_write: cacheFields,
  compute_at: { nest: name, at: loop },
  fission: { loop, after: [(x) => name[0](x) || number[0](x), 'a name or a number'] },
  rfactor: { loop, into: optional(name) },
  atomic: { buffer: name },
  accumulate: {
    buffer: name,
    loop,
    by: optional(number),
    within: optional(loop),
    into: optional(name),
  },
  combine: { buffer: name, nest: optional(name) },
  merge: { nests: listOf(name) },
}

type Problem = Pick<Diagnostic, 'message'> & Advice

/** What every step has. */
const IN_ALL: readonly string[] = ['kind', 'span']

function stepProblem(s: unknown): Problem | undefined {
  if (typeof s !== 'object' || s === null)
    return { message: 'this is no step', expected: 'an object with a kind' }
  const step = s as Readonly<Record<string, unknown>>
  const kind = String(step.kind)
  const fields = Object.hasOwn(FIELDS, kind) ? FIELDS[kind as LoopStep['kind']] : undefined
  if (!fields)
    return {
      message: `there is no step ${JSON.stringify(step.kind)}`,
      lookup: { name: kind, candidates: Object.keys(FIELDS) },
      expected: Object.keys(FIELDS).join(', '),
    }
  const wrong = Object.entries(fields).find(([field, [test]]) => !test(step[field]))
  if (wrong) return { message: `${kind} has no proper ${wrong[0]}`, expected: wrong[1][1] }
  const strange = Object.keys(step).find((field) => !IN_ALL.includes(field) && !Object.hasOwn(fields, field))
  if (strange === undefined) return undefined
  return { message: `${kind} has no ${strange}`, expected: Object.keys(fields).join(', ') }
}

/** Refuses what is no step, which only untyped callers can pass. */
export function checkStep(step: unknown): void {
  const problem = stepProblem(step)
  if (problem) fail({ ...problem, code: 'schedule/bad-step' })
}
