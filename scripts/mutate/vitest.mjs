/** Runs tests over the build with mutants. */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'

/** One seed, few cases, no shrinking. */
const ENV = { NO_COLOR: '1', SPT_RUNS: process.env.SPT_RUNS ?? '0.3', SPT_SEED: '2026', SPT_FAIL_FAST: '1' }

/**
 * @param cache - the folder that contains `build/`
 * @param limit - seconds
 * @returns {Promise<{ verdict: 'killed' | 'survived' | 'timeout', by?: string }>} `by`: the first test that failed
 */
export function vitest(args, env, cache, limit) {
  return new Promise((done) => {
    const child = spawn('npx', ['vitest', 'run', '--config', 'scripts/mutate/vitest.config.mjs', ...args], {
      env: { ...process.env, BUILD: `${cache}/build`, ...ENV, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    let text = ''
    let late = false
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (d) => {
        text += d
      })
    const timer = setTimeout(() => {
      late = true
      process.kill(-child.pid, 'SIGKILL')
    }, limit * 1000)
    child.on('exit', (code) => {
      clearTimeout(timer)
      const by = /FAIL\s+(.*)/.exec(text)?.[1]
      if (env.LOG) writeFileSync(env.LOG, text)
      done({ verdict: late ? 'timeout' : code === 0 ? 'survived' : 'killed', by })
    })
  })
}
