/** Process resources of a command; tests substitute their own. */
import { writeSync } from 'node:fs'
import { escapeLine } from '../../ast/diagnostics/render.ts'
import type { WorkOptions } from '../../ast/work.ts'
import { version } from '../../io/package/package.ts'

export interface Io {
  out(text: string): void
  err(text: string): void
  stdin(): Promise<string>
  /** True if the output may contain ANSI colours. */
  readonly color: { readonly out: boolean; readonly err: boolean }
  /** True if standard error is a terminal, where progress is shown. */
  readonly terminal?: boolean
  /** True for a file or a pipe: progress of long work is written as lines. */
  readonly progressLines?: boolean
  /** Shows a line of progress on a terminal (`withProgress`); `''`: none. */
  progress?(line: string): void
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Moves to the start of the line and clears the line. */
const CLEAR = '\r\x1b[K'

/** Adds a progress line to a terminal's output, which is cleared before other output. */
export function withProgress(io: Io): Io {
  if (!io.terminal) return io
  let isShown = false
  const clear = (): void => {
    if (isShown) io.err(CLEAR)
    isShown = false
  }
  return {
    ...io,
    out(text) {
      clear()
      io.out(text)
    },
    err(text) {
      clear()
      io.err(text)
    },
    progress(line) {
      clear()
      if (line === '') return
      io.err(line)
      isShown = true
    },
  }
}

/** Shows the progress of a long call: in place on a terminal, otherwise a line for each phase. */
export function progressOn(io: Io): NonNullable<WorkOptions['onProgress']> {
  let last = ''
  return ({ phase, item }) => {
    const line = item === undefined ? phase : `${phase} ${item}`
    io.progress?.(escapeLine(line))
    if (io.progress || !io.progressLines || phase === last) return
    last = phase
    io.err(`${escapeLine(line)}\n`)
  }
}

const supportsColor = (stream: NodeJS.WriteStream): boolean =>
  stream.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb'

/**
 * A closed pipe on standard output (`spt … | head`) ends the process without an error, as for other tools. Other write errors
 * (a full disk) lose output, so they fail.
 */
function endOnWriteError(stream: NodeJS.WriteStream): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    if (stream !== process.stderr) writeSync(2, `spt: standard output cannot be written: ${error.message}\n`)
    process.exit(1)
  })
}

export function processIo(): Io {
  endOnWriteError(process.stdout)
  endOnWriteError(process.stderr)
  const terminal = process.stderr.isTTY === true && process.env.TERM !== 'dumb'
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    async stdin() {
      const chunks: Buffer[] = []
      for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
      return Buffer.concat(chunks).toString('utf8')
    },
    color: { out: supportsColor(process.stdout), err: supportsColor(process.stderr) },
    terminal,
    progressLines: !terminal,
    env: process.env,
  }
}

export const isVersionFlag = (word: string | undefined): boolean => word === '-v' || word === '--version'

/** Prints the version if its flag is the only word, without loading the commands. */
export function handleVersionFlag([word, ...others]: readonly string[], io: Io): boolean {
  if (!isVersionFlag(word) || others.length > 0) return false
  io.out(`sparsetile ${version()}\n`)
  return true
}
