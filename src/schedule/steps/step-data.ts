/** Steps as data, by the declared arguments of their primitives: validation, and conversion to text. */
import { type Advice, type Diagnostic, failAt } from '../../ast/diagnostics/diagnostic.ts'
import { isRecord, show } from '../../ast/diagnostics/expect-argument.ts'
import type { StepSyntax, Syntax, ValueSyntax } from '../../ast/nodes/step-syntax.ts'
import { THREAD_AXES } from '../../ir/expressions/expr.ts'
import type { Instr, Memory } from '../../ir/instructions/instr.ts'
import { memoize } from '../../ir/memoize.ts'
import { isHandle, type LoopRef } from '../names/kernel-names.ts'
import type { StepIn } from '../primitive.ts'
import { LOOP_STEPS } from '../primitives.ts'
import type { Located } from '../refusals.ts'

/** `call`: a call of the step's method, for the hint. */
type Words = Readonly<Record<string, StepSyntax & { readonly call?: string }>>

// Validation ---------------------------------------------------------------------------------------------------

/** A test whether a value is valid for a field, and a description of the valid values. */
type Field = readonly [is: (x: unknown) => boolean, expected: string]

const isName = (x: unknown): boolean => typeof x === 'string'
const isLoop = (x: unknown): boolean => isName(x) || isHandle(x)
const isAxis = (x: unknown): boolean => (THREAD_AXES as readonly unknown[]).includes(x)
const DECLARED: Field = [(x) => isRecord(x) && isName(x.name), 'one that a program declares']

function fieldOf(v: ValueSyntax): Field {
  switch (v.kind) {
    case 'loop':
      return v.handles ? [isLoop, 'a loop: its name, or a handle'] : [isName, 'a name']
    case 'name':
      return [isName, 'a name']
    case 'integer':
      return [(x) => typeof x === 'number', 'a number']
    case 'place':
      return [(x) => isName(x) || typeof x === 'number', 'a name or a number']
    case 'binding':
      return [(x) => isRecord(x) && isLoop(x.loop) && isAxis(x.to), "{ loop: …, to: 'block.x' }"]
    case 'word':
      if (v.means === true) return [(x) => typeof x === 'boolean', 'true or false']
      return [(x) => x === v.means, `'${v.means}'`]
    case 'instance':
      if (v.of === 'instr') return DECLARED
      return [(x) => x === 'shared' || x === 'register', "'shared' or 'register'"]
    case 'list': {
      const [is, what] = fieldOf(v.of)
      const { count, least = 0 } = v
      const length = typeof count === 'number' ? ` of ${count}` : least > 1 ? ` of ${least} or more` : ''
      const fits = (n: number): boolean => (typeof count === 'number' ? n === count : n >= least)
      return [(x) => Array.isArray(x) && x.every(is) && fits(x.length), `a list${length}, each ${what}`]
    }
    case 'data':
      return [v.is, v.expected]
  }
}

const optional = ([is, what]: Field): Field => [(x) => x === undefined || is(x), `${what}, or nothing`]

/** Returns the fields of a form, in the order of its text. */
const fieldsIn = (form: readonly Syntax[]): (readonly [name: string, Field])[] =>
  form.flatMap((s) => {
    if (typeof s === 'string') return []
    if ('optional' in s) return fieldsIn(s.optional).map(([name, f]) => [name, optional(f)] as const)
    const own = [s.field, fieldOf(s.value)] as const
    const isMemory = s.value.kind === 'instance' && s.value.of === 'memory'
    return isMemory ? [['memory', optional(DECLARED)], own] : [own]
  })

/** Returns the fields of all forms; the values of a field are valid if they are valid in one of the forms. */
const fieldsOf = memoize(({ forms }: StepSyntax): ReadonlyMap<string, Field> => {
  const out = new Map<string, Field>()
  for (const [name, field] of forms.flatMap(fieldsIn)) {
    const other = out.get(name)
    const what = other && other[1] !== field[1] ? `${other[1]} or ${field[1]}` : field[1]
    out.set(name, [(x) => field[0](x) || other?.[0](x) === true, what])
  }
  return out
})

type Problem = Pick<Diagnostic, 'message'> & Advice

const IN_ALL: readonly string[] = ['kind', 'span']

/**
 * Returns the reason why a value is not a step among `words`; undefined if it is a step. `where` names the stage in the
 * message, if necessary.
 */
export function stepProblem(step: unknown, words: Words, where = ''): Problem | undefined {
  if (typeof step !== 'object' || step === null)
    return { message: 'this is not a step', expected: 'an object with a kind' }
  const given = step as Readonly<Record<string, unknown>>
  const kind = String(given.kind)
  if (!Object.hasOwn(words, kind))
    return {
      message: `there is no step ${JSON.stringify(given.kind)}${where}`,
      lookup: { name: kind, candidates: Object.keys(words) },
      expected: Object.keys(words).join(', '),
    }
  const fields = fieldsOf(words[kind]!)
  const { call } = words[kind]!
  const advice = call === undefined ? {} : { hint: `write \`${call}\`` }
  const wrong = [...fields].find(([name, [is]]) => !is(given[name]))
  if (wrong) {
    const [name, [, expected]] = wrong
    const value = given[name]
    const message =
      value === undefined ? `${kind} lacks ${name}` : `${name} of ${kind} cannot be ${show(value)}`
    return { message, expected, ...advice }
  }
  const strange = Object.keys(given).find((name) => !IN_ALL.includes(name) && !fields.has(name))
  if (strange === undefined) return undefined
  return { message: `${kind} has no ${strange}`, expected: [...fields.keys()].join(', '), ...advice }
}

/** Throws if a value is not a step; only untyped callers can pass such values. @throws SptError `schedule/bad-step` */
export function checkStep(step: unknown, words: Words, where?: string): void {
  const problem = stepProblem(step, words, where)
  if (problem) failAt('schedule/bad-step', (step as Located | null | undefined)?.span, problem)
}

// Conversion to text ---------------------------------------------------------------------------------------------

type Fields = Readonly<Record<string, unknown>>

/** Returns a step as `.spt` text; `named` returns the current name of a handle's loop. */
export function stepText(
  { word, forms }: StepSyntax,
  step: object,
  named = (v: string): string => v,
): string {
  const fields = step as Fields
  const loopText = (l: LoopRef): string => (typeof l === 'string' ? l : named(l.var))
  const valueText = (v: ValueSyntax, x: unknown): string => {
    switch (v.kind) {
      case 'loop':
        return loopText(x as LoopRef)
      case 'binding': {
        const { loop, to } = x as { readonly loop: LoopRef; readonly to: string }
        return `${loopText(loop)} to ${to}`
      }
      case 'word':
        return v.text
      case 'instance':
        if (v.of === 'instr') return (x as Instr).name
        return (fields.memory as Memory | undefined)?.name ?? String(x)
      case 'list': {
        const items = (x as readonly unknown[]).map((y) => valueText(v.of, y)).join(', ')
        return v.parentheses ? `(${items})` : items
      }
      default:
        return String(x)
    }
  }
  const texts = (s: Syntax): string[] => {
    if (typeof s === 'string') return [s]
    if ('field' in s) return [valueText(s.value, fields[s.field])]
    const isGiven = (x: unknown): boolean => x !== undefined && x !== false
    const given = s.optional.some((x) => typeof x === 'object' && 'field' in x && isGiven(fields[x.field]))
    const inside = s.optional.filter((x) => given || (typeof x === 'object' && 'optional' in x))
    return inside.flatMap(texts)
  }
  return [word, ...(forms.find((f) => f.every((s) => isSaid(s, fields))) ?? forms[0]!).flatMap(texts)].join(
    ' ',
  )
}

/** Returns whether a keyword that distinguishes forms has the value of the step's field. */
const isSaid = (s: Syntax, fields: Fields): boolean =>
  typeof s === 'string' || 'optional' in s || s.value.kind !== 'word' || s.value.means === fields[s.field]

// Steps on loops (Stage II) as plain data: the common form of `.spt` schedules, TypeScript calls, traces and
// JSON.

/** A step on loops; `kind` is its word. */
export type LoopStep = StepIn<typeof LOOP_STEPS>

/** Returns a step as `.spt` text; `named` returns the current name of a handle's loop. */
export const printStep = (s: LoopStep, named?: (variable: string) => string): string =>
  stepText(LOOP_STEPS[s.kind], s, named)
