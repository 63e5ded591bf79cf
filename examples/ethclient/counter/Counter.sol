// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

/// Counts up, in steps of ten at most.
contract Counter {
    /// The step that was asked for is larger than allowed.
    error TooFar(uint256 asked, uint256 allowed);

    event Counted(address indexed who, uint256 step, uint256 total);

    uint256 public total;

    function count(uint256 step) external {
        if (step > 10) revert TooFar(step, 10);
        total += step;
        emit Counted(msg.sender, step, total);
    }

    /// Always refuses, in words.
    function refuse() external pure {
        revert("not today");
    }
}
