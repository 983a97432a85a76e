/** Errors that tests expect. */
import { expect } from 'vitest'
import { type Diagnostic, SptError } from '../../src/ast/diagnostics/diagnostic.ts'

const FIELDS = new Set([
  'code',
  'severity',
  'message',
  'span',
  'labels',
  'notes',
  'expected',
  'lookup',
  'hint',
  'commandHint',
])

/** A diagnostic is data for users: it has no other fields, such as parts of the kernel. */
function checked(d: Diagnostic): Diagnostic {
  expect(Object.keys(d).filter((field) => !FIELDS.has(field))).toEqual([])
  return d
}

/** The first diagnostic of what `f` throws, and nothing where it throws nothing. */
export function diagnosticOf(f: () => unknown): Diagnostic | undefined {
  try {
    f()
  } catch (e) {
    if (e instanceof SptError) return checked(e.diagnostics[0]!)
    throw e
  }
  return undefined
}

/** The same, where there must be one. */
export function refusal(f: () => unknown): Diagnostic {
  const found = diagnosticOf(f)
  if (!found) throw new Error('nothing was refused')
  return found
}
