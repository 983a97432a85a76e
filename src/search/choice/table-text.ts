/** Dispatch tables as text: a JSON file with one rule per line, so that differences between versions are readable. */
import type { RuleOrigin } from '../../ast/nodes/nodes.ts'
import { TABLE_VERSION } from '../../ast/parse/parse-table.ts'

/** A rule of a dispatch table, in the syntax of the language. */
export interface StoredRule {
  /** The condition; absent for all other cases. */
  readonly when?: string
  /** The schedule, or the candidates among which the cost model selects. */
  readonly calls: string | readonly string[]
  readonly origin?: string
  readonly note?: string
}

export interface StoredDispatch {
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
