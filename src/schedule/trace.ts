/** Loop steps from outside: what is a step at all, and traces as JSON. */
import { fail } from '../ast/diagnostic.ts'
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
  const bad = (what: string): never =>
    fail({ code: 'schedule/bad-trace', message: what, expected: 'a list of steps as JSON' })
  if (!Array.isArray(data)) return bad('this is no trace of a schedule')
  data.forEach((s: unknown, k) => {
    const problem = stepProblem(s)
    if (problem) bad(`step ${k + 1} of the trace: ${problem}`)
  })
  return data as LoopStep[]
}

const isName = (x: unknown): boolean => typeof x === 'string'
const isRef = (x: unknown): boolean =>
  isName(x) || (typeof x === 'object' && x !== null && isName((x as { var?: unknown }).var))
const isNumber = (x: unknown): boolean => typeof x === 'number'
const listOf = (test: (x: unknown) => boolean) => (x: unknown) => Array.isArray(x) && x.every(test)
const optional = (test: (x: unknown) => boolean) => (x: unknown) => x === undefined || test(x)
const isBinding = (x: unknown): boolean => {
  const b = x as { loop?: unknown; to?: unknown } | null
  return typeof b === 'object' && b !== null && isRef(b.loop) && /^(block|thread)\.[xyz]$/.test(String(b.to))
}
const isScope = (x: unknown): boolean => x === 'shared' || x === 'register'
const isDeclared = (x: unknown): boolean =>
  typeof x === 'object' && x !== null && isName((x as { name?: unknown }).name)
const cacheFields = {
  memory: optional(isDeclared),
  buffer: isName,
  at: isRef,
  scope: isScope,
  into: optional(isName),
}

const FIELDS: { readonly [K in LoopStep['kind']]: Readonly<Record<string, (x: unknown) => boolean>> } = {
  split: {
    loop: isRef,
    by: isNumber,
    into: optional((x) => listOf(isName)(x) && (x as unknown[]).length === 2),
  },
  fuse: { loops: listOf(isRef), into: optional(isName) },
  reorder: { loops: listOf(isRef) },
  serpentine: { loop: isRef, by: isNumber },
  tile: { loops: listOf(isRef), by: listOf(isNumber), into: optional(listOf(isName)) },
  bind: { bindings: listOf(isBinding) },
  unroll: { loop: isRef, by: optional(isNumber), predicated: optional((x) => typeof x === 'boolean') },
  vectorize: { loop: isRef },
  require: { size: isName, relation: (x) => x === 'multiple' || x === 'equal', by: isNumber },
  tensorize: { loop: isRef, instr: isDeclared },
  cache_read: {
    ...cacheFields,
    transposed: optional((x) => typeof x === 'boolean'),
    stride: optional(isNumber),
    by: optional(isNumber),
    padded: optional(isNumber),
  },
  pipeline: { loop: isRef, by: isNumber },
  cluster: { loop: isRef, by: isNumber },
  cache_write: cacheFields,
  compute_at: { nest: isName, at: isRef },
  fission: { loop: isRef, after: (x) => isName(x) || isNumber(x) },
  rfactor: { loop: isRef, into: optional(isName) },
  atomic: { buffer: isName },
  accumulate: {
    buffer: isName,
    loop: isRef,
    by: optional(isNumber),
    within: optional(isRef),
    into: optional(isName),
  },
  combine: { buffer: isName, nest: optional(isName) },
  merge: { nests: listOf(isName) },
}

/** What every step has. */
const IN_ALL: readonly string[] = ['kind', 'span']

function stepProblem(s: unknown): string | undefined {
  if (typeof s !== 'object' || s === null) return 'this is no step'
  const step = s as Readonly<Record<string, unknown>>
  const fields = Object.hasOwn(FIELDS, String(step.kind)) ? FIELDS[step.kind as LoopStep['kind']] : undefined
  if (!fields) return `there is no step ${JSON.stringify(step.kind)}`
  const wrong = Object.entries(fields).find(([name, test]) => !test(step[name]))
  if (wrong) return `${String(step.kind)} has no proper ${wrong[0]}`
  const strange = Object.keys(step).find((name) => !IN_ALL.includes(name) && !Object.hasOwn(fields, name))
  return strange === undefined ? undefined : `${String(step.kind)} has no ${strange}`
}

/** Refuses what is no step, which only untyped callers can pass. */
export function checkStep(step: unknown): void {
  const problem = stepProblem(step)
  if (problem === undefined) return
  const kind = (step as { kind?: unknown } | null)?.kind
  fail({
    code: 'schedule/bad-step',
    message: problem,
    ...(typeof kind === 'string' ? { lookup: { name: kind, candidates: Object.keys(FIELDS) } } : {}),
  })
}
