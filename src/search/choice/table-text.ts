/**
 * Dispatch tables as text: a JSON file with one rule per line, so that differences between versions are readable. Rules
 * for one kind of device are merged into the table, and tables of another version of their kernel are reported.
 */
import type { Kernel } from '../../api/kernels/kernel.ts'
import { type Diagnostic, fail } from '../../ast/diagnostics/diagnostic.ts'
import type { RuleOrigin } from '../../ast/nodes/nodes.ts'
import { parseTable, TABLE_VERSION } from '../../ast/parse/parse-table.ts'
import { printStep } from '../../ast/print/print.ts'
import type { Schedule } from '../../elaborate/index.ts'
import { kernelWord } from '../../ir/coordinates/derived-names.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import { hashOf, kernelHash } from '../records/identity.ts'

/** A rule of a dispatch table, in the syntax of the language. */
export interface StoredRule {
  /** The condition; absent for all other cases. */
  readonly when?: string
  /** The schedule, or the candidates among which the cost model selects. */
  readonly calls: string | readonly string[]
  readonly origin?: string
  readonly note?: string
}

interface StoredDispatch {
  readonly kernel: string
  readonly kernelHash?: string
  readonly origins: readonly RuleOrigin[]
  readonly rules: readonly StoredRule[]
}

/** Longest line of a rule; longer rules have a field per line. */
const WIDTH = 120

const fieldLines = (fields: readonly (readonly [string, string])[], indent: string): string =>
  fields.map(([name, value]) => `${indent}"${name}": ${value}`).join(',\n')

function ruleText({ when, calls, origin, note }: StoredRule): string {
  const texts = Object.entries({ when, use: typeof calls === 'string' ? calls : undefined, origin, note })
  const fields = texts.flatMap(([name, x]): (readonly [string, string])[] =>
    x === undefined ? [] : [[name, JSON.stringify(x)]],
  )
  if (typeof calls !== 'string') {
    const list = calls.map((c) => `        ${JSON.stringify(c)}`).join(',\n')
    fields.splice(when === undefined ? 0 : 1, 0, ['fastest', `[\n${list}\n      ]`])
  }
  const line = `    { ${fields.map(([name, value]) => `"${name}": ${value}`).join(', ')} }`
  if (line.length <= WIDTH && !line.includes('\n')) return line
  return `    {\n${fieldLines(fields, '      ')}\n    }`
}

export function dispatchTableText({ kernel, kernelHash, origins, rules }: StoredDispatch): string {
  const head = [`"version": ${TABLE_VERSION}`, `"kernel": ${JSON.stringify(kernel)}`]
  if (kernelHash !== undefined) head.push(`"kernelHash": ${JSON.stringify(kernelHash)}`)
  const stated = origins.map(({ name, ...fields }) => {
    const values = Object.entries(fields).map(([k, v]) => [k, JSON.stringify(v)] as const)
    return `    ${JSON.stringify(name)}: {\n${fieldLines(values, '      ')}\n    }`
  })
  return `{
  ${head.join(',\n  ')},
  "origins": {
${stated.join(',\n')}
  },
  "rules": [
${rules.map(ruleText).join(',\n')}
  ]
}
`
}

// Dispatch tables of another version of their kernel.

/**
 * A warning for each dispatch table that was found before its kernel or the called schedules changed. A table can serve
 * all types of a kernel: pass the kernels of all types, of which one has the hash.
 */
export function staleChoices(...kernels: readonly Kernel[]): readonly Diagnostic[] {
  const stored = kernels.flatMap((kernel) =>
    [...kernel.declaredDispatches.values()].flatMap(({ name, table }) => {
      if (!table?.kernelHash) return []
      const now = tableHash(
        kernel,
        table.branches.flatMap((b) => b.calls.map((c) => c.schedule.name)),
      )
      // The hash of the kernel alone: a search found schedules that were not declared yet.
      const isCurrent = [now, kernelHash(kernel)].includes(table.kernelHash.name)
      return [{ kernel, name, table, hash: table.kernelHash, now, isCurrent }]
    }),
  )
  const current = new Set(stored.flatMap((s) => (s.isCurrent ? [s.table.path] : [])))
  const stale = new Map(
    stored.flatMap((s) => (current.has(s.table.path) ? [] : [[s.table.path, s] as const])).reverse(),
  )
  return [...stale.values()].map(({ kernel, name, table, hash, now }) => ({
    code: 'table/stale',
    severity: 'warning',
    message: `the dispatch table of ${kernel.name}.${name} was found for another version of the kernel or of its schedules`,
    span: hash.span,
    hint: `search again: spt tune FILE --kernel ${kernelWord(kernel.name)} --bind … --generalise ${table.path}; if the schedules are as fast as before: "kernelHash": "${now}"`,
  }))
}

// Dispatch tables from searches: the rules for one kind of device, next to the rules for others that a table
// has.

interface RuleJson extends Omit<StoredRule, 'calls'> {
  readonly use?: string
  readonly fastest?: readonly string[]
}

/** Rules that a search found for a kind of device, with the search. */
export interface FoundRules {
  readonly kernel: Kernel
  readonly rules: readonly StoredRule[]
  readonly device: DeviceKind
  readonly origin: RuleOrigin
}

/** @throws SptError `table/…` for a text that is no table of the kernel */
export function checkTable(text: string, name: string, kernel: string): void {
  const { table } = parseTable({ name, text })
  const of = table!.kernel
  if (of.name !== kernel)
    fail({
      code: 'table/kernel',
      message: `\`${name}\` holds a dispatch of kernel ${of.name}`,
      span: of.span,
      expected: `a dispatch of kernel ${kernel}`,
      hint: 'name another file',
    })
}

/**
 * The text of a dispatch table with the found rules. With `previous`, the text of an earlier table, they apply to their
 * kind of device only, and come first. The earlier rules follow, except rules for the same kind of device if one of the
 * found rules holds for all data.
 */
export function dispatchTable({ kernel, rules, device, origin }: FoundRules, previous?: string): string {
  const found = rules.map(({ when, calls }): StoredRule => {
    const of = when === undefined ? device : `${device} and ${grouped(when)}`
    const condition = previous === undefined ? when : of
    return { ...(condition !== undefined && { when: condition }), calls, origin: origin.name }
  })
  const isTotal = rules.some((r) => r.when === undefined)
  const isReplaced = ({ when, origin: from }: StoredRule): boolean =>
    from === origin.name ||
    (isTotal && when !== undefined && new RegExp(`^${device}(?:$| and )(?!.* or )`).test(when))
  const before = previous === undefined ? { origins: {}, rules: [] } : (JSON.parse(previous) as TableJson)
  const kept = before.rules
    .map(({ use, fastest, ...r }): StoredRule => ({ ...r, calls: use ?? fastest! }))
    .filter((r) => !isReplaced(r))
  const all = [...found, ...kept]
  const origins = [...Object.entries(before.origins).map(([name, o]) => ({ ...o, name })), origin].filter(
    (o, k, list) =>
      all.some((r) => r.origin === o.name) && list.findLastIndex((p) => p.name === o.name) === k,
  )
  const called = all.flatMap((r) => r.calls).map((call) => /\w+/.exec(call)![0])
  return dispatchTableText({
    kernel: kernel.name,
    kernelHash: tableHash(kernel, called),
    origins,
    rules: all,
  })
}

interface TableJson {
  readonly origins: Readonly<Record<string, Omit<RuleOrigin, 'name'>>>
  readonly rules: readonly RuleJson[]
}

const grouped = (condition: string): string => (/\bor\b/.test(condition) ? `(${condition})` : condition)

// Identity of what a dispatch table was found for.

/**
 * Hash of a kernel before any step and of the schedules that a table calls, with the schedules that these use; of the
 * kernel alone if a search found schedules that are not declared yet.
 */
export function tableHash(kernel: Kernel, called: readonly string[]): string {
  const names = [...new Set(called)].sort()
  const declared = names.flatMap((name) => kernel.declaredSchedules.get(name) ?? [])
  const unknown = names.length - declared.length
  const dispatches = names.filter((name) => kernel.declaredDispatches.has(name)).length
  if (unknown > dispatches) return kernelHash(kernel)
  const used = new Set<Schedule>()
  const visit = (s: Schedule): void => {
    if (used.has(s)) return
    used.add(s)
    s.uses.forEach(visit)
  }
  declared.forEach(visit)
  return hashOf(kernelHash(kernel), ...[...used].map(scheduleIdentity))
}

const scheduleIdentity = ({ name, params, steps }: Schedule): string =>
  JSON.stringify([name, params, steps.map(printStep)], (key, x: unknown) => (key === 'span' ? undefined : x))
