/**
 * Groups of loops or names in the arguments of a step: `'(score, allow).i'`, `'(score.i, allow.k)'`, `'(S, T)'`. The step
 * applies to each member, in order, as the same group does in `.spt`.
 */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { isRecord } from '../inputs/argument-checks.ts'

/** Returns the members of a group; null for another text. */
function membersOf(text: string): readonly string[] | null {
  const group = /^\(([\w.\s]+(?:,[\w.\s]+)+)\)(?:\.(\w+))?$/.exec(text.trim())
  const suffix = group?.[2] === undefined ? '' : `.${group[2]}`
  return group?.[1]?.split(',').map((member) => `${member.trim()}${suffix}`) ?? null
}

/** Replaces each group in an argument by the value of `choose`. */
function withMembers(given: unknown, choose: (members: readonly string[]) => string): unknown {
  if (typeof given === 'string') {
    const members = membersOf(given)
    return members ? choose(members) : given
  }
  if (Array.isArray(given)) return given.map((g) => withMembers(g, choose))
  if (!isRecord(given) || Object.getPrototypeOf(given) !== Object.prototype) return given
  return Object.fromEntries(
    Object.entries(given).map(([key, g]) => [withMembers(key, choose) as string, withMembers(g, choose)]),
  )
}

/**
 * Returns the arguments of each step that a call stands for; null for a call without groups. @throws SptError
 * `api/argument` for groups of different lengths
 */
export function callsOf(args: readonly unknown[]): readonly (readonly unknown[])[] | null {
  const groups: (readonly string[])[] = []
  withMembers(args, (members) => {
    groups.push(members)
    return ''
  })
  const [first] = groups
  if (!first) return null
  const other = groups.find((g) => g.length !== first.length)
  if (other)
    fail({
      code: 'api/argument',
      message: `the groups (${first.join(', ')}) and (${other.join(', ')}) have different lengths`,
      expected: `${first.length} names in each group`,
    })
  return first.map((_, k) => withMembers(args, (members) => members[k]!) as readonly unknown[])
}
