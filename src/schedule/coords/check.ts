/** Steps on coordinates from callers without types: what is a step at all. */
import { fail } from '../../ast/diagnostic.ts'
import type { CoordStep } from './steps.ts'

type Test = (x: unknown) => boolean

const isName: Test = (x) => typeof x === 'string'
const isNewName: Test = (x) => x === undefined || isName(x)
const namesOf =
  (least: number): Test =>
  (x) =>
    Array.isArray(x) && x.length >= least && x.every(isName)
const isFormat: Test = (x) => {
  const f = x as { [field in 'kind' | 'axes' | 'parts' | 'params' | 'ofOrder']?: unknown } | null
  if (typeof f !== 'object' || f === null || !Array.isArray(f.params)) return false
  if (f.kind === 'family') return typeof f.ofOrder === 'function'
  return Array.isArray(f.kind === 'composition' ? f.parts : f.axes)
}
const areArguments: Test = (x) =>
  Array.isArray(x) && x.every((a) => typeof a === 'string' || (typeof a === 'number' && Number.isFinite(a)))

const FIELDS: { readonly [K in CoordStep['kind']]: Readonly<Record<string, readonly [Test, string]>> } = {
  as: {
    buffer: [isName, 'a name'],
    format: [isFormat, 'a format'],
    args: [areArguments, 'a list of numbers and names'],
  },
  reorder: { loops: [namesOf(1), 'a list of names'] },
  fuse: { loops: [namesOf(2), 'a list of two names or more'], into: [isNewName, 'a name'] },
  attach: { loop: [isName, 'a name'], to: [isName, 'a name'] },
}

/** @throws SptError `schedule/bad-step` */
export function checkCoordStep(step: CoordStep): void {
  const s: unknown = step
  if (typeof s !== 'object' || s === null)
    fail({ code: 'schedule/bad-step', message: 'this is no step', expected: 'an object with a kind' })
  const { kind } = s as { kind?: unknown }
  const name = String(kind)
  if (!Object.hasOwn(FIELDS, name))
    fail({
      code: 'schedule/bad-step',
      message: `there is no step ${JSON.stringify(kind)} on coordinates`,
      lookup: { name, candidates: Object.keys(FIELDS) },
      expected: Object.keys(FIELDS).join(', '),
    })
  for (const [field, [test, expected]] of Object.entries(FIELDS[name as CoordStep['kind']]))
    if (!test((s as Record<string, unknown>)[field]))
      fail({
        code: 'schedule/bad-step',
        message: `${name} has no proper ${field}`,
        ...(step.span ? { span: step.span } : {}),
        expected,
      })
  for (const field of Object.keys(s))
    if (field !== 'kind' && field !== 'span' && !Object.hasOwn(FIELDS[name as CoordStep['kind']], field))
      fail({
        code: 'schedule/bad-step',
        message: `${name} has no ${field}`,
        ...(step.span ? { span: step.span } : {}),
        expected: Object.keys(FIELDS[name as CoordStep['kind']]).join(', '),
      })
}
