/** Prints survivors and a table of the modules. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

const judged = JSON.parse(readFileSync('scripts/mutate/judged.json', 'utf8'))

/** The reason why a mutant is known to change no result. Files are compared by name, because folders change. */
const equivalent = (m) =>
  judged.find(
    (j) =>
      basename(j.file) === basename(m.file) &&
      j.was === m.was &&
      j.text === m.text &&
      (!j.in || j.in === m.in),
  )?.why

/** Mutants have a `module` and, if they were tried, a `verdict`. */
export function report(modules, mutants) {
  const tried = mutants.filter((m) => m.verdict)
  for (const m of tried.filter(isAlive)) {
    console.log(`\n${m.id} ${m.verdict} ${m.file}:${m.line} ${m.kind}`)
    console.log(`- ${m.was.replaceAll('\n', '\n- ')}\n+ ${m.text.replaceAll('\n', '\n+ ')}`)
    console.log(equivalent(m) ? `no result changes: ${equivalent(m)}` : 'not judged')
  }
  const row = (cells) => console.log(cells.map((c, k) => (k ? `${c}`.padStart(10) : c.padEnd(12))).join(' '))
  console.log('')
  row(['module', 'drawn', 'killed', 'timed out', 'survived', 'unreached', 'equivalent', 'score'])
  for (const module of [...modules, 'all']) {
    const own = tried.filter((m) => module === 'all' || m.module === module)
    const count = (verdict) => own.filter((m) => m.verdict === verdict).length
    const same = own.filter((m) => isAlive(m) && equivalent(m)).length
    const dead = count('killed') + count('timeout')
    const score = own.length > same ? `${Math.round((1000 * dead) / (own.length - same)) / 10} %` : ''
    row([
      module,
      own.length,
      count('killed'),
      count('timeout'),
      count('survived'),
      count('unreached'),
      same,
      score,
    ])
  }
  const byText = tried.filter((m) => m.by?.startsWith('emit')).length
  console.log(`${byText} were detected by emitted code alone; the score leaves out equivalent mutants`)
}

const isAlive = (m) => ['survived', 'unreached'].includes(m.verdict)
