import { vite as sparsetile } from 'sparsetile/bundler'

export default { plugins: [sparsetile()] }
