/** Parses NVRTC's log, and builds diagnostics with the source lines of its messages. */
import { type Diagnostic, type Span, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { ModuleText } from '../device.ts'

export interface LogMessage {
  readonly severity: 'error' | 'warning'
  /** 1-based line of the source; undefined for messages about the whole module (ptxas, options). */
  readonly line?: number
  readonly text: string
}

const AT_LINE = /^(.*)\((\d+)\): (catastrophic error|error|warning)(?: #\d+(?:-D)?)?: (.*)$/
const OVERALL = /^(?:ptxas|nvrtc|nvlink)\s*:?\s*(error|fatal|warning)\s*:\s*(.*)$/

/** Parses a compiler log. `file` is the name of the compiled source; messages in headers keep the header's name. */
export function parseLog(log: string, file: string): LogMessage[] {
  const messages: LogMessage[] = []
  for (const raw of log.split('\n')) {
    const row = raw.trimEnd()
    const match = AT_LINE.exec(row)
    if (match) {
      const severity = match[3] === 'warning' ? 'warning' : 'error'
      const isInSource = match[1] === file
      messages.push(
        isInSource
          ? { severity, line: Number(match[2]), text: match[4]! }
          : { severity, text: `${match[1]}(${match[2]}): ${match[4]}` },
      )
      continue
    }
    const overall = OVERALL.exec(row)
    if (overall) {
      const severity = overall[1] === 'warning' ? 'warning' : 'error'
      messages.push({ severity, text: overall[2]! })
    }
  }
  return messages
}

/** Numbered lines around `line`, which is marked. */
export function excerpt(text: string, line: number, context = 2): string {
  const lines = text.split('\n')
  const first = Math.max(1, line - context)
  const last = Math.min(lines.length, line + context)
  const width = String(last).length
  const rows: string[] = []
  for (let n = first; n <= last; n++) {
    rows.push(`${n === line ? '>' : ' '} ${String(n).padStart(width)} | ${lines[n - 1] ?? ''}`)
  }
  return rows.join('\n')
}

function spanOfLine(source: string, text: string, line: number): Span {
  const lines = text.split('\n')
  const index = Math.min(Math.max(line, 1), lines.length) - 1
  let start = 0
  for (let i = 0; i < index; i++) start += lines[i]!.length + 1
  return { source, start, end: start + lines[index]!.length }
}

const MAX_LOG = 4000

/** Error of a module that did not compile; `file` is the name of the source in the log. */
export function compileError(module: ModuleText, file: string, log: string, status: string): SptError {
  const errors = parseLog(log, file).filter((m) => m.severity === 'error')
  const first = errors.find((m) => m.line !== undefined) ?? errors[0]
  const notes: string[] = []
  if (first?.line !== undefined) notes.push(excerpt(module.text, first.line))
  const trimmedLog = log.trim()
  if (trimmedLog)
    notes.push(
      trimmedLog.length > MAX_LOG
        ? `${trimmedLog.slice(0, MAX_LOG)}\n… (${trimmedLog.length} characters)`
        : trimmedLog,
    )
  const lineText = first?.line === undefined ? '' : ` line ${first.line}:`
  const furtherErrors = errors.length > 1 ? ` (and ${errors.length - 1} more)` : ''
  const diagnostic: Diagnostic = {
    code: 'device/compile',
    message: `CUDA module '${module.name}':${lineText} ${first?.text ?? status}${furtherErrors}`,
    expected: 'CUDA C++ that NVRTC accepts',
    notes,
  }
  return new SptError(
    first?.line === undefined
      ? diagnostic
      : { ...diagnostic, span: spanOfLine(file, module.text, first.line) },
  )
}
