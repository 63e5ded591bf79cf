// With MINING=manual, transactions stay in the pool: no block is ever made.
const mining = process.env.MINING === "manual" ? { auto: false, interval: 0 } : {};
module.exports = { solidity: "0.8.24", networks: { hardhat: { mining } } };
