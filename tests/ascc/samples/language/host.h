#pragma once
int check_value(int got, int expected);
